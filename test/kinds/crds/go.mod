module overrule.dev/overrule/test/kinds/crds

go 1.26.8

require (
	github.com/envoyproxy/gateway v1.9.0
	istio.io/api v1.31.1 // the zip of v1.31.0 is not on the Go module proxy
)
