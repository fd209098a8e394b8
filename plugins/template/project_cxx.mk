# SPDX-License-Identifier: Apache-2.0
NAME = template
CXXFLAGS ?= -O2 -Wall -Wextra
$(NAME).so: $(NAME).cpp
	$(CXX) -std=c++17 $(CXXFLAGS) $$(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=$(NAME) \
		-fPIC -fvisibility=hidden -shared -Wl,-z,defs -o $@ $< -lm
