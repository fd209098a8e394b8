# SPDX-License-Identifier: Apache-2.0
# The Python package: `make wheel` packs what is built here (python/wheel.sh).
wheel: all libdtrain-env.la
	rm -rf wheel.dir/install wheel.dir/plain
	$(MAKE) install DESTDIR='$(abs_builddir)/wheel.dir/install' >/dev/null
	sh $(srcdir)/python/wheel.sh '$(abs_srcdir)' '$(PACKAGE_VERSION)' '$(prefix)' '$(bindir)' '$(libdir)' '$(plugindir)' '$(pkgdatadir)'
.PHONY: wheel clean-wheel
clean-local: clean-wheel
clean-wheel:
	rm -rf wheel.dir dist
EXTRA_DIST += bench/python/cartpole.py python/README.md python/pyproject.toml python/tag.py python/wheel.sh python/dtrain/__init__.py \
	python/dtrain/__main__.py python/dtrain/_native.py python/dtrain/gym.py python/dtrain/_spaces.py \
	python/dtrain/envs.py python/dtrain/parallel.py python/dtrain/policy.py python/dtrain/runs.py python/dtrain/weights.py
