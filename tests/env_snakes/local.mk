# SPDX-License-Identifier: Apache-2.0
# plugins/env_snakes: the game against recorded ones of the original (test_env: its face to the host).
dt_tests += tests/env_snakes/test_replay
tests_env_snakes_test_replay_SOURCES = tests/env_snakes/test_replay.c tests/env_snakes/records.h $(snakes_sources)
tests_env_snakes_test_replay_LDADD = $(CMOCKA_LIBS) -lm
dt_tests += tests/env_snakes/test_matchups
tests_env_snakes_test_matchups_SOURCES = tests/env_snakes/test_matchups.c $(snakes_sources)
tests_env_snakes_test_matchups_LDADD = $(CMOCKA_LIBS) -lm
dt_tests += tests/env_snakes/test_env
tests_env_snakes_test_env_SOURCES = tests/env_snakes/test_env.c
tests_env_snakes_test_env_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_env_snakes_test_env_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
EXTRA_DIST += tests/fixtures/snakes/ORIGIN.md tests/fixtures/snakes/games.txt tests/fixtures/snakes/views.txt
dt_training_scripts += tests/env_snakes/learn.sh
dt_longer_tests += tests/env_snakes/learn.sh
tests/env_snakes/learn.log: dtrain $(plugin_LTLIBRARIES)
