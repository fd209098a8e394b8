# SPDX-License-Identifier: Apache-2.0
# Installed in the same folders as here, so that links between pages work there too.
dist_doc_DATA = README.md README.zh.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE
docpagesdir = $(docdir)
nobase_dist_docpages_DATA = docs/start.md \
	docs/tutorial/first-run.md \
	docs/tutorial/own-table.md \
	docs/tutorial/rl-phase.md \
	docs/tutorial/sumo.md \
	docs/howto/docker.md \
	docs/howto/exporting.md \
	docs/howto/from-omnisafe.md \
	docs/howto/from-rllib.md \
	docs/howto/from-stable-baselines3.md \
	docs/howto/from-sumo-rl.md \
	docs/howto/gpu-measure.md \
	docs/howto/gpu.md \
	docs/howto/import.md \
	docs/howto/installing.md \
	docs/howto/limits.md \
	docs/howto/multi-agent.md \
	docs/howto/offline.md \
	docs/howto/offpolicy.md \
	docs/howto/phases.md \
	docs/howto/plugin-phases.md \
	docs/howto/plugins.md \
	docs/howto/policies.md \
	docs/howto/porting.md \
	docs/howto/processes.md \
	docs/howto/running.md \
	docs/howto/experiments.md \
	docs/howto/python.md docs/howto/python-environments.md \
	docs/howto/self-play.md \
	docs/howto/several-environments.md \
	docs/howto/stores.md \
	docs/howto/train-on-recordings.md \
	docs/howto/troubleshooting.md \
	docs/howto/watching.md \
	docs/howto/world-models.md \
	docs/reference/columns.md \
	docs/reference/configuration.md \
	docs/reference/environments.md \
	docs/reference/exit-codes.md \
	docs/reference/formats.md \
	docs/reference/glossary.md \
	docs/reference/guide-keys.md \
	docs/reference/options-data.md \
	docs/reference/options-environment.md \
	docs/reference/options-host.md \
	docs/reference/options-model.md \
	docs/reference/options-phase.md \
	docs/reference/recording-files.md \
	docs/reference/results.md \
	docs/reference/signals.md \
	docs/reference/status.md \
	docs/reference/stored-rollouts.md \
	docs/reference/sumo.md \
	docs/reference/traffic-files.md \
	docs/explanation/architecture.md \
	docs/explanation/gpu.md \
	docs/explanation/normalisation.md \
	docs/explanation/predictions.md \
	docs/explanation/ranks.md \
	docs/explanation/reproducibility.md \
	docs/explanation/security.md \
	docs/slurm.sh docs/dtrain@.service docs/kubernetes-job.yaml docs/kubernetes-mpijob.yaml \
	docs/img/report.svg docs/img/episode.svg
EXTRA_DIST += docs/img/make.sh docs/img/cut.py
dist_man3_MANS = docs/libdtrain-policy.3

# these pages and the reference of include/dtrain as a site; needs mkdocs and doxygen, which building dtrain does not
EXTRA_DIST += docs/site/make.sh docs/site/mkdocs.yml docs/site/tables.css docs/site/Doxyfile docs/site/api.dox \
	docs/site/comments.py
docs:
	@$(SHELL) $(srcdir)/docs/site/make.sh site
clean-local: clean-site
clean-site:
	rm -rf site site.src
.PHONY: docs clean-site
