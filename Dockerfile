# The base image has a full version and no digest: digests are not known where this file is checked. To pin one,
# pass --build-arg GO_IMAGE=golang:VERSION@sha256:DIGEST.
ARG GO_IMAGE=golang:1.26.8-bookworm

# The build: a static binary, so that the final image needs nothing else.
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The version that is asked for, if any, is that of the source.
ARG VERSION=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -buildid=" -o /out/portico ./cmd/portico \
 && /out/portico version | grep -qF "portico ${VERSION}" \
 && mkdir -p /out/data/spool

# The image: the program, the system's certificates and one folder to write to.
FROM scratch
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="Portico" \
      org.opencontainers.image.description="A compatibility facade for Bugzilla-style trackers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/portico /portico
COPY --from=build --chown=65532:65532 /out/data /data

# Durable state (portico.db) and attachments on their way are in /data. A named volume keeps the state.
WORKDIR /data
VOLUME ["/data"]
ENV PORTICO_BLOBS_DIR=/data/spool

# Loopback is of no use to clients of a container. Operators need a token off
# loopback: set PORTICO_ADMIN_LISTEN=:9080 together with PORTICO_ADMIN_TOKEN_FILE.
ENV PORTICO_LISTEN=:8080
EXPOSE 8080 9080

# A number, so that an orchestrator can see that it is not root.
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/portico", "health"]
ENTRYPOINT ["/portico"]
CMD ["serve"]
