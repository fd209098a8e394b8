# SPDX-License-Identifier: Apache-2.0
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
