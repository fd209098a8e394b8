# SPDX-License-Identifier: Apache-2.0
# dtrain in a container; docs/howto/docker.md explains how to build and use it.
#   docker build --target cpu -t dtrain .          Debian 12, without a GPU
#   docker build --target cuda -t dtrain:cuda .    NVIDIA CUDA on Ubuntu 22.04 (needs the NVIDIA container toolkit to run)

FROM debian:bookworm-slim AS cpu-build
RUN apt-get update && apt-get install -y --no-install-recommends \
        autoconf automake g++ gcc libc6-dev libconfig-dev libexpat1-dev libhdf5-dev libltdl-dev liblzma-dev \
        libopenmpi-dev libtool libyaml-dev libzstd-dev make openmpi-bin pkgconf zlib1g-dev && \
    rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src/build-image
RUN cd .. && ./bootstrap && cd build-image && ../configure --prefix=/usr/local --without-cuda && \
    make -j"$(nproc)" && make install-strip DESTDIR=/image

FROM debian:bookworm-slim AS cpu
RUN apt-get update && apt-get install -y --no-install-recommends \
        libconfig9 libexpat1 libhdf5-103-1 libltdl7 liblzma5 libopenmpi3 libyaml-0-2 libzstd1 openmpi-bin zlib1g && \
    rm -rf /var/lib/apt/lists/*
COPY --from=cpu-build /image/ /
RUN ldconfig && dtrain --version
WORKDIR /work
ENTRYPOINT ["dtrain"]
CMD ["--help"]

FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS cuda-build
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        autoconf automake g++ gcc libc6-dev libconfig-dev libexpat1-dev libhdf5-dev libltdl-dev liblzma-dev \
        libopenmpi-dev libtool libyaml-dev libzstd-dev make openmpi-bin pkgconf zlib1g-dev && \
    rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src/build-image
RUN cd .. && ./bootstrap && cd build-image && ../configure --prefix=/usr/local --with-cuda=/usr/local/cuda && \
    make -j"$(nproc)" && make install-strip DESTDIR=/image

FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04 AS cuda
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        libconfig9 libexpat1 libhdf5-103-1 libltdl7 liblzma5 libopenmpi3 libyaml-0-2 libzstd1 openmpi-bin zlib1g && \
    rm -rf /var/lib/apt/lists/*
COPY --from=cuda-build /image/ /
# NVML, for the records of the GPU's memory and use
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN ldconfig && dtrain --version
WORKDIR /work
ENTRYPOINT ["dtrain"]
CMD ["--help"]
