# SPDX-License-Identifier: Apache-2.0
# Mutation tests: faults that tests of their room must notice (README.md here). They compile and run for minutes,
# outside the gate.
mutant_tables = tests/mutants/core.txt tests/mutants/models.txt tests/mutants/phases.txt tests/mutants/plugins.txt
EXTRA_DIST += tests/mutants/run.sh tests/mutants/README.md $(mutant_tables)

check-mutants:
	DT_SRCDIR='$(abs_top_srcdir)' CC='$(CC)' $(SHELL) $(srcdir)/tests/mutants/run.sh $(mutant_tables:%=$(srcdir)/%)

# what a mutant of a phase, model or environment is built into
mutant-plugins: $(plugin_LTLIBRARIES) $(module_LTLIBRARIES) $(sumo_LTLIBRARIES)
.PHONY: check-mutants mutant-plugins
