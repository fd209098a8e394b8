# SPDX-License-Identifier: Apache-2.0
# What is read, installed as it lies here, so that links lead from page to page there too.
dist_doc_DATA = README.md README.zh.md CHANGELOG.md LICENSE
docpagesdir = $(docdir)/docs
dist_docpages_DATA = docs/architecture.md docs/configuration.md docs/data.md docs/exporting.md docs/glossary.md docs/gpu.md \
	docs/installing.md docs/limits.md docs/offpolicy.md docs/phases.md docs/plugins.md docs/policies.md docs/porting.md docs/processes.md docs/ranks.md docs/results.md docs/rl-phase.md \
	docs/running.md docs/security.md docs/status.md docs/sumo.md docs/traffic-files.md docs/troubleshooting.md docs/world.md \
	docs/slurm.sh docs/dtrain@.service docs/kubernetes-job.yaml docs/kubernetes-mpijob.yaml
docimgdir = $(docpagesdir)/img
dist_docimg_DATA = docs/img/report.svg docs/img/episode.svg
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
