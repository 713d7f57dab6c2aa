# The image has one static binary: no shell, no packages, no user database.
# For several platforms: docker buildx build --platform linux/amd64,linux/arm64
# "make image" builds the same image without a container engine.
ARG GO_VERSION=1.26.8
# The compiler runs on the build platform and cross-compiles for the target platform.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=dev REVISION=
# grpcnotrace leaves out gRPC's debug pages, which make the server 50 % larger.
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -tags=grpcnotrace -trimpath -buildvcs=false -ldflags="-s -w -X overrule.dev/overrule/internal/build.version=$VERSION -X overrule.dev/overrule/internal/build.revision=$REVISION" -o /overrule ./cmd/overrule

# scratch has no root certificates: the API server's is mounted with the ServiceAccount token, and that
# of a trace collector must be mounted.
FROM scratch
ARG VERSION=dev REVISION=
LABEL org.opencontainers.image.title="overrule" \
      org.opencontainers.image.description="Admission server that evaluates writes by the effective policies they change" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /overrule /overrule
USER 65532:65532
EXPOSE 9443 9444 8080 8081
ENTRYPOINT ["/overrule"]
