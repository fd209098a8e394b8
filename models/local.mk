# SPDX-License-Identifier: Apache-2.0
# Model components, one folder each. The controllers, the critics and the world models share private headers in this
# folder.
plugin_LTLIBRARIES += \
	models/controller_conv.la \
	models/controller_field.la \
	models/controller_fixed.la \
	models/controller_greedy.la \
	models/controller_idm.la \
	models/controller_influence.la \
	models/controller_lstm.la \
	models/controller_max_pressure.la \
	models/controller_mlp.la \
	models/controller_snakes.la \
	models/critic_conv.la \
	models/critic_mlp.la \
	models/critic_others.la \
	models/critic_quadratic.la \
	models/risk_gnn.la \
	models/shield_barrier.la \
	models/temperature.la \
	models/world_constant_velocity.la \
	models/world_gru.la \
	models/world_lstm.la

controller_cppflags = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/models

models_controller_conv_la_SOURCES = models/controller_conv/controller_conv.c models/controller_net.h \
	models/conv_net.h
models_controller_conv_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_conv
models_controller_conv_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_conv_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_conv_la_LIBADD = -lm

models_controller_field_la_SOURCES = models/controller_field/controller_field.c models/controller_net.h
models_controller_field_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_field
models_controller_field_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_field_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_field_la_LIBADD = -lm

models_controller_fixed_la_SOURCES = models/controller_fixed/controller_fixed.c \
	models/controller_net.h models/controller_rule.h
models_controller_fixed_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_fixed
models_controller_fixed_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_fixed_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_fixed_la_LIBADD = -lm

models_controller_greedy_la_SOURCES = models/controller_greedy/controller_greedy.c \
	models/controller_net.h models/controller_rule.h
models_controller_greedy_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_greedy
models_controller_greedy_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_greedy_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_greedy_la_LIBADD = -lm

models_controller_max_pressure_la_SOURCES = models/controller_max_pressure/controller_max_pressure.c \
	models/controller_net.h models/controller_rule.h
models_controller_max_pressure_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_max_pressure
models_controller_max_pressure_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_max_pressure_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_max_pressure_la_LIBADD = -lm

models_controller_idm_la_SOURCES = models/controller_idm/controller_idm.c models/controller_net.h
models_controller_idm_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_idm
models_controller_idm_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_idm_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_idm_la_LIBADD = -lm

models_controller_influence_la_SOURCES = models/controller_influence/controller_influence.c \
	models/controller_influence/influence.h models/controller_influence/signals.c \
	models/controller_influence/vehicles.c models/controller_net.h
models_controller_influence_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_influence
models_controller_influence_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_influence_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_influence_la_LIBADD = -lm

models_controller_lstm_la_SOURCES = models/controller_lstm/controller_lstm.c models/controller_net.h
models_controller_lstm_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_lstm
models_controller_lstm_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_lstm_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_lstm_la_LIBADD = -lm

models_controller_mlp_la_SOURCES = models/controller_mlp/controller_mlp.c models/controller_net.h
models_controller_mlp_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_mlp
models_controller_mlp_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_mlp_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_mlp_la_LIBADD = -lm

models_controller_snakes_la_SOURCES = models/controller_snakes/controller_snakes.c models/controller_net.h
models_controller_snakes_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=controller_snakes
models_controller_snakes_la_CFLAGS = $(PLUGIN_CFLAGS)
models_controller_snakes_la_LDFLAGS = $(PLUGIN_LINK)
models_controller_snakes_la_LIBADD = -lm

models_critic_conv_la_SOURCES = models/critic_conv/critic_conv.c models/controller_net.h models/conv_net.h
models_critic_conv_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=critic_conv
models_critic_conv_la_CFLAGS = $(PLUGIN_CFLAGS)
models_critic_conv_la_LDFLAGS = $(PLUGIN_LINK)
models_critic_conv_la_LIBADD = -lm

models_critic_mlp_la_SOURCES = models/critic_mlp/critic_mlp.c models/critic_net.h
models_critic_mlp_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=critic_mlp
models_critic_mlp_la_CFLAGS = $(PLUGIN_CFLAGS)
models_critic_mlp_la_LDFLAGS = $(PLUGIN_LINK)
models_critic_mlp_la_LIBADD = -lm

models_critic_quadratic_la_SOURCES = models/critic_quadratic/critic_quadratic.c models/critic_net.h
models_critic_quadratic_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=critic_quadratic
models_critic_quadratic_la_CFLAGS = $(PLUGIN_CFLAGS)
models_critic_quadratic_la_LDFLAGS = $(PLUGIN_LINK)
models_critic_quadratic_la_LIBADD = -lm

models_critic_others_la_SOURCES = models/critic_others/critic_others.c models/controller_net.h
models_critic_others_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=critic_others
models_critic_others_la_CFLAGS = $(PLUGIN_CFLAGS)
models_critic_others_la_LDFLAGS = $(PLUGIN_LINK)
models_critic_others_la_LIBADD = -lm

models_risk_gnn_la_SOURCES = models/risk_gnn/risk_gnn.c models/risk_gnn/normalise.h \
	models/risk_gnn/slots.c models/risk_gnn/slots.h
models_risk_gnn_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=risk_gnn
models_risk_gnn_la_CFLAGS = $(PLUGIN_CFLAGS)
models_risk_gnn_la_LDFLAGS = $(PLUGIN_LINK)
models_risk_gnn_la_LIBADD = -lm

models_shield_barrier_la_SOURCES = models/shield_barrier/shield_barrier.c models/controller_net.h
models_shield_barrier_la_CPPFLAGS = $(controller_cppflags) -DDT_PLUGIN_NAME=shield_barrier
models_shield_barrier_la_CFLAGS = $(PLUGIN_CFLAGS)
models_shield_barrier_la_LDFLAGS = $(PLUGIN_LINK)
models_shield_barrier_la_LIBADD = -lm

models_temperature_la_SOURCES = models/temperature/temperature.c
models_temperature_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=temperature
models_temperature_la_CFLAGS = $(PLUGIN_CFLAGS)
models_temperature_la_LDFLAGS = $(PLUGIN_LINK)
models_temperature_la_LIBADD = -lm

world_cppflags = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/models

models_world_constant_velocity_la_SOURCES = models/world_constant_velocity/world_constant_velocity.c models/world_future.h models/world_net.h \
	models/world_road.h
models_world_constant_velocity_la_CPPFLAGS = $(world_cppflags) -DDT_PLUGIN_NAME=world_constant_velocity
models_world_constant_velocity_la_CFLAGS = $(PLUGIN_CFLAGS)
models_world_constant_velocity_la_LDFLAGS = $(PLUGIN_LINK)
models_world_constant_velocity_la_LIBADD = -lm

models_world_gru_la_SOURCES = models/world_gru/world_gru.c models/world_future.h models/world_net.h \
	models/world_road.h
models_world_gru_la_CPPFLAGS = $(world_cppflags) -DDT_PLUGIN_NAME=world_gru
models_world_gru_la_CFLAGS = $(PLUGIN_CFLAGS)
models_world_gru_la_LDFLAGS = $(PLUGIN_LINK)
models_world_gru_la_LIBADD = -lm

models_world_lstm_la_SOURCES = models/world_lstm/world_lstm.c models/world_future.h models/world_net.h \
	models/world_road.h
models_world_lstm_la_CPPFLAGS = $(world_cppflags) -DDT_PLUGIN_NAME=world_lstm
models_world_lstm_la_CFLAGS = $(PLUGIN_CFLAGS)
models_world_lstm_la_LDFLAGS = $(PLUGIN_LINK)
models_world_lstm_la_LIBADD = -lm
