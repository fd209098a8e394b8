# SPDX-License-Identifier: Apache-2.0
dist_pkgdata_DATA = share/hybrid.cfg

# The recording that comes with dtrain, and what made it (python3 and SUMO, at authoring time alone).
demodir = $(pkgdatadir)/demo
demochunksdir = $(demodir)/chunks
dist_demo_DATA = share/demo/README.md share/demo/metadata.json share/demo/statistics.json
dist_demochunks_DATA = \
	share/demo/chunks/chunk_000.json \
	share/demo/chunks/chunk_001.json \
	share/demo/chunks/chunk_002.json \
	share/demo/chunks/chunk_003.json \
	share/demo/chunks/chunk_004.json \
	share/demo/chunks/chunk_005.json \
	share/demo/chunks/chunk_006.json \
	share/demo/chunks/chunk_007.json \
	share/demo/chunks/chunk_008.json \
	share/demo/chunks/chunk_009.json \
	share/demo/chunks/chunk_010.json \
	share/demo/chunks/chunk_011.json \
	share/demo/chunks/chunk_012.json \
	share/demo/chunks/chunk_013.json
dist_noinst_DATA += tools/recording/demo.nod.xml tools/recording/demo.edg.xml tools/recording/demo.con.xml
dist_noinst_SCRIPTS += tools/recording/make_demo.py

# What turns parquet into a table that an import reads: nothing here reads it, and nothing else needs python3.
dist_pkgdata_DATA += tools/recording/argoverse2.py

# The same recording as a store, made by the program that was just built: what data.store = "" stands for.
demostoredir = $(pkgdatadir)/demo.store
demo_arrays = \
	share/demo.store/edge.npy \
	share/demo.store/edge_ptr.npy \
	share/demo.store/edge_src.npy \
	share/demo.store/frame_row.npy \
	share/demo.store/frame_time.npy \
	share/demo.store/motion.npy \
	share/demo.store/node.npy \
	share/demo.store/pose.npy \
	share/demo.store/risk.npy \
	share/demo.store/row_track.npy \
	share/demo.store/scene_frame.npy \
	share/demo.store/scene_site.npy \
	share/demo.store/track_id.npy \
	share/demo.store/track_ptr.npy \
	share/demo.store/track_row.npy
nodist_demostore_DATA = share/demo.store/store.json $(demo_arrays)
$(demo_arrays): share/demo.store/store.json
share/demo.store/store.json: dtrain$(EXEEXT) $(dist_demo_DATA) $(dist_demochunks_DATA)
	$(AM_V_GEN)$(MKDIR_P) share && rm -rf share/demo.store && \
	./dtrain$(EXEEXT) data import $(srcdir)/share/demo --out share/demo.store --set import.smooth_s=0 --quiet
clean-local: clean-demo-store
clean-demo-store:
	rm -rf share/demo.store share/demo.store.partial
.PHONY: clean-demo-store
