# SPDX-License-Identifier: Apache-2.0
# One source, many plugins: good.so as it stands, the others wrong in one way each (automake knows no loops).
dt_tests += tests/plugin/loader/test_loader
loader_la =
loader_link = $(PLUGIN_LINK) -rpath /nowhere
loader_open_link = -module -avoid-version -shared $(DT_SAN) -rpath /nowhere

loader_la += tests/plugin/loader/good.la
tests_plugin_loader_good_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good
tests_plugin_loader_good_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/good_newer.la
tests_plugin_loader_good_newer_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_newer_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good_newer -DNEWER
tests_plugin_loader_good_newer_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_newer_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/good_two.la
tests_plugin_loader_good_two_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_two_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good_two -DTWO_PHASES
tests_plugin_loader_good_two_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_two_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/good_model_only.la
tests_plugin_loader_good_model_only_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_model_only_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good_model_only -DMODEL_ONLY
tests_plugin_loader_good_model_only_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_model_only_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/good_env.la
tests_plugin_loader_good_env_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_env_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good_env -DGOOD_ENV
tests_plugin_loader_good_env_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_env_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/good_smaller.la
tests_plugin_loader_good_smaller_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_smaller_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=good_smaller -DSMALLER
tests_plugin_loader_good_smaller_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_smaller_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_magic.la
tests_plugin_loader_bad_magic_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_magic_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_magic -DBAD_MAGIC
tests_plugin_loader_bad_magic_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_magic_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_size.la
tests_plugin_loader_bad_size_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_size_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_size -DBAD_SIZE
tests_plugin_loader_bad_size_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_size_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_short.la
tests_plugin_loader_bad_short_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_short_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_short -DBAD_SHORT
tests_plugin_loader_bad_short_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_short_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_major.la
tests_plugin_loader_bad_major_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_major_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_major -DBAD_MAJOR
tests_plugin_loader_bad_major_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_major_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/old_major.la
tests_plugin_loader_old_major_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_old_major_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=old_major -DOLD_MAJOR
tests_plugin_loader_old_major_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_old_major_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_minor.la
tests_plugin_loader_bad_minor_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_minor_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_minor -DBAD_MINOR
tests_plugin_loader_bad_minor_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_minor_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_layout.la
tests_plugin_loader_bad_layout_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_layout_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_layout -DBAD_LAYOUT
tests_plugin_loader_bad_layout_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_layout_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_name.la
tests_plugin_loader_bad_name_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_name_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_name -DBAD_NAME
tests_plugin_loader_bad_name_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_name_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_null.la
tests_plugin_loader_bad_null_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_null_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_null -DBAD_NULL
tests_plugin_loader_bad_null_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_null_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_empty.la
tests_plugin_loader_bad_empty_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_empty_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_empty -DBAD_EMPTY
tests_plugin_loader_bad_empty_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_empty_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_duplicate.la
tests_plugin_loader_bad_duplicate_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_duplicate_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_duplicate -DBAD_DUPLICATE
tests_plugin_loader_bad_duplicate_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_duplicate_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_taken.la
tests_plugin_loader_bad_taken_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_taken_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_taken -DBAD_TAKEN
tests_plugin_loader_bad_taken_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_taken_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_op.la
tests_plugin_loader_bad_op_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_op_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_op -DBAD_OP
tests_plugin_loader_bad_op_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_op_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_ops_size.la
tests_plugin_loader_bad_ops_size_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_ops_size_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_ops_size -DBAD_OPS_SIZE
tests_plugin_loader_bad_ops_size_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_ops_size_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_no_ops.la
tests_plugin_loader_bad_no_ops_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_no_ops_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_no_ops -DBAD_NO_OPS
tests_plugin_loader_bad_no_ops_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_no_ops_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_save.la
tests_plugin_loader_bad_save_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_save_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_save -DBAD_SAVE
tests_plugin_loader_bad_save_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_save_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_component_size.la
tests_plugin_loader_bad_component_size_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_component_size_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_component_size -DBAD_COMPONENT_SIZE
tests_plugin_loader_bad_component_size_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_component_size_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_option_size.la
tests_plugin_loader_bad_option_size_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_option_size_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_option_size -DBAD_OPTION_SIZE
tests_plugin_loader_bad_option_size_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_option_size_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_default.la
tests_plugin_loader_bad_default_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_default_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_default -DBAD_DEFAULT
tests_plugin_loader_bad_default_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_default_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_kind.la
tests_plugin_loader_bad_kind_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_kind_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_kind -DBAD_KIND
tests_plugin_loader_bad_kind_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_kind_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_id.la
tests_plugin_loader_bad_id_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_id_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_id -DBAD_ID
tests_plugin_loader_bad_id_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_id_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_reserved.la
tests_plugin_loader_bad_reserved_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_reserved_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_reserved -DBAD_RESERVED
tests_plugin_loader_bad_reserved_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_reserved_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_role.la
tests_plugin_loader_bad_role_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_role_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_role -DBAD_ROLE
tests_plugin_loader_bad_role_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_role_la_LDFLAGS = $(loader_link)

loader_la += tests/plugin/loader/bad_init.la
tests_plugin_loader_bad_init_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_init_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_init -DBAD_INIT
tests_plugin_loader_bad_init_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_init_la_LDFLAGS = $(loader_link)

# without DT_PLUGIN_NAME: the plain entry point
loader_la += tests/plugin/loader/good_plain.la
tests_plugin_loader_good_plain_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_good_plain_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
tests_plugin_loader_good_plain_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_good_plain_la_LDFLAGS = $(loader_open_link)

# the entry point of another name
loader_la += tests/plugin/loader/bad_symbol.la
tests_plugin_loader_bad_symbol_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_symbol_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=once_called
tests_plugin_loader_bad_symbol_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_symbol_la_LDFLAGS = $(loader_link)

# a function that nobody defines, met only when it is called
loader_la += tests/plugin/loader/bad_lazy.la
tests_plugin_loader_bad_lazy_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_lazy_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_lazy -DBAD_LAZY
tests_plugin_loader_bad_lazy_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_lazy_la_LDFLAGS = $(loader_open_link) -Wl,-z,lazy

# no entry point, and a library beneath that has one
loader_la += tests/plugin/loader/liblender.la tests/plugin/loader/bad_borrowed.la
tests_plugin_loader_liblender_la_SOURCES = tests/plugin/loader/lender.c
tests_plugin_loader_liblender_la_CPPFLAGS = $(PLUGIN_CPPFLAGS)
tests_plugin_loader_liblender_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_liblender_la_LDFLAGS = -avoid-version -shared $(DT_SAN) -rpath /nowhere
tests_plugin_loader_bad_borrowed_la_SOURCES = tests/plugin/loader/bad.c
tests_plugin_loader_bad_borrowed_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bad_borrowed -DBAD_NO_ENTRY
tests_plugin_loader_bad_borrowed_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_borrowed_la_LDFLAGS = $(loader_open_link) -Wl,-rpath,$(abs_top_builddir)/tests/plugin/loader/.libs
tests_plugin_loader_bad_borrowed_la_LIBADD = tests/plugin/loader/liblender.la

# neither
loader_la += tests/plugin/loader/bad_entry.la
tests_plugin_loader_bad_entry_la_SOURCES = tests/plugin/loader/lender.c
tests_plugin_loader_bad_entry_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -Ddt_plugin_entry=another_entry
tests_plugin_loader_bad_entry_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_loader_bad_entry_la_LDFLAGS = $(loader_open_link)

check_LTLIBRARIES += $(loader_la)
dt_scripts += tests/plugin/loader/preopen.sh
tests/plugin/loader/preopen.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
