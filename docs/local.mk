# SPDX-License-Identifier: Apache-2.0
# Beside README, licence and changelog: phases in one configuration, how to install, how to run long trainings, and what
# to do when something goes wrong.
dist_doc_DATA = README.md CHANGELOG.md LICENSE \
	docs/data.md docs/installing.md docs/phases.md docs/running.md docs/security.md docs/troubleshooting.md docs/slurm.sh \
	docs/dtrain@.service docs/kubernetes-job.yaml docs/kubernetes-mpijob.yaml
