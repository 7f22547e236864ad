# The service in an image without a shell:
#   docker build -t bellwether .
#   docker run --read-only -v bellwether:/data -p 8480:8480 -p 8481:8481 \
#     -v ./tls.crt:/tls.crt:ro -v ./tls.key:/tls.key:ro bellwether serve --tls-cert /tls.crt --tls-key /tls.key
FROM rust:1.95-slim-trixie AS build
WORKDIR /src
# Set these when building, as the build context has no Git history: --build-arg VERGEN_GIT_SHA=$(git rev-parse HEAD)
ARG VERGEN_GIT_SHA
ARG VERGEN_GIT_COMMIT_DATE
COPY . .
RUN cargo build --release --locked --bin bellwether \
    && mkdir /data && chmod 0700 /data

FROM gcr.io/distroless/cc-debian13:nonroot
COPY --from=build /src/target/release/bellwether /usr/bin/bellwether
COPY --from=build --chown=nonroot:nonroot /data /data
# The folder for keys that nodes over a database share.
COPY --from=build --chown=nonroot:nonroot /data /keys
ENV BELLWETHER_DATA_DIR=/data \
    BELLWETHER_GRPC_LISTEN=0.0.0.0:8481 \
    BELLWETHER_REST_LISTEN=0.0.0.0:8480
VOLUME /data
EXPOSE 8480 8481
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=15m --start-interval=1s \
    CMD ["/usr/bin/bellwether", "health"]
ENTRYPOINT ["/usr/bin/bellwether"]
CMD ["serve"]
