# The server alone: one static file, no shell, no packages, no user database.
# For several platforms: docker buildx build --platform linux/amd64,linux/arm64
# "make image" makes the same without a container engine.
ARG GO_VERSION=1.26.8
# The compiler runs as what builds, and compiles for what is asked for.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=dev REVISION=
# Without the pages of gRPC for debugging, which make the server half as large again.
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -tags=grpcnotrace -trimpath -buildvcs=false -ldflags="-s -w -X overrule.dev/overrule/internal/build.version=$VERSION -X overrule.dev/overrule/internal/build.revision=$REVISION" -o /overrule ./cmd/overrule

# scratch has no certificate roots: in a cluster the API server's comes with the ServiceAccount, and
# that of a collector of traces has to be mounted.
FROM scratch
ARG VERSION=dev REVISION=
LABEL org.opencontainers.image.title="overrule" \
      org.opencontainers.image.description="Admission server that evaluates writes by the effective policies they change" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /overrule /overrule
USER 65532:65532
EXPOSE 9443 8080 8081
ENTRYPOINT ["/overrule"]
