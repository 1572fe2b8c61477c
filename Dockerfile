# The build: a static binary, so that the final image needs nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/portico ./cmd/portico \
 && mkdir -p /out/data/spool

# The image: the program, the system's certificates and one folder to write to.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/portico /portico
COPY --from=build --chown=65532:65532 /out/data /data

# Durable state (portico.db) and attachments on their way rest in /data.
WORKDIR /data
ENV PORTICO_BLOBS_DIR=/data/spool

# Loopback is of no use to clients of a container. Operators need a token off
# loopback: set PORTICO_ADMIN_LISTEN=:9080 together with PORTICO_ADMIN_TOKEN_FILE.
ENV PORTICO_LISTEN=:8080
EXPOSE 8080 9080

# A number, so that an orchestrator can see that it is not root.
USER 65532:65532
ENTRYPOINT ["/portico"]
CMD ["serve"]
