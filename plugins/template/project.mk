# SPDX-License-Identifier: Apache-2.0
NAME = template
CFLAGS ?= -O2 -Wall -Wextra
$(NAME).so: $(NAME).c
	$(CC) -std=c11 $(CFLAGS) $$(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=$(NAME) \
		-fPIC -fvisibility=hidden -shared -Wl,-z,defs -o $@ $< -lm
