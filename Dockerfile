# The image: the static binary on a base that has certificates and no shell.
#
#   docker build --build-arg BASE_IMAGE=... --tag pdbmux .
#
# BASE_IMAGE is a distroless static image, wherever it is taken from.
ARG BUILD_IMAGE=rust:1.95
ARG BASE_IMAGE

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
RUN make build

FROM ${BASE_IMAGE}
COPY --from=build /src/dist/pdbmux /pdbmux
USER 65532:65532
EXPOSE 8080
HEALTHCHECK CMD ["/pdbmux", "healthcheck"]
ENTRYPOINT ["/pdbmux"]
