package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/internal/build"
)

// buildInfo is a metric of which build runs: several at once, and a roll-out is
// not over.
func buildInfo(b build.Info) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_build_info",
		Help: "1, with the version, the revision and the Go version that the server was built from.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go,
		},
	}, func() float64 { return 1 })
}
