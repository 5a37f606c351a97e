# CPU:      docker build -t superopt .
# CUDA:     docker build -t superopt:cuda --build-arg EXTRAS="[cuda]" .
#           The CUDA and cuDNN libraries come from the Python package index, the driver from the host: docker run --gpus all
# Use:      docker run --rm --user "$(id -u)" -v "$PWD:/models" superopt optimize in.onnx -o out.onnx
# Service:  docker build -t superopt-service --target service --build-arg EXTRAS="[postgres]" .
#           docker run --rm --init -p 8000:8000 -v superopt:/var/lib/superopt superopt-service
#           or with PostgreSQL: docker-compose.yml; on Kubernetes: examples/kubernetes.yaml

ARG BASE=python:3.12-slim
FROM ${BASE} AS installed
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
ENTRYPOINT ["superopt"]

FROM installed AS service
RUN install --directory --owner=superopt --group=superopt --mode=700 /var/lib/superopt
ENV SUPEROPT_DATA=/var/lib/superopt
ENV SUPEROPT_HOST=0.0.0.0
USER superopt
WORKDIR /var/lib/superopt
VOLUME /var/lib/superopt
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["python", "-m", "server.alive"]
CMD ["serve"]

# Last, so that it is what a build without a target gives.
FROM installed AS command
USER superopt
WORKDIR /models
HEALTHCHECK --interval=60s --timeout=10s --retries=3 CMD ["superopt", "--version"]
CMD ["--help"]
