# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/train/test_samples tests/train/test_trainer
tests_train_test_trainer_SOURCES = tests/train/test_trainer.c tests/train/toy.c tests/train/toy.h
dt_scripts += tests/train/crash.sh
