# CPU:   docker build -t superopt .
# CUDA:  docker build -t superopt:cuda --build-arg EXTRAS="[cuda]" .
#        The CUDA and cuDNN libraries come from the Python package index, the driver from the host: docker run --gpus all
# Use:   docker run --rm --user "$(id -u)" -v "$PWD:/models" superopt optimize in.onnx -o out.onnx

ARG BASE=python:3.12-slim
FROM ${BASE}
ARG EXTRAS=""

# Measured costs are kept in the cache folder, whoever the container runs as.
RUN useradd --uid 10001 --create-home superopt \
 && install --directory --mode=1777 /var/cache/superopt
ENV XDG_CACHE_HOME=/var/cache/superopt

WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY superopt ./superopt
COPY specs ./specs
COPY server ./server
COPY rules ./rules
# The base image has no compiler: a binary of an older release rather than the newest source.
RUN pip install --no-cache-dir --prefer-binary ".${EXTRAS}"

USER superopt
WORKDIR /models
HEALTHCHECK --interval=60s --timeout=10s --retries=3 CMD ["superopt", "--version"]
ENTRYPOINT ["superopt"]
CMD ["--help"]
