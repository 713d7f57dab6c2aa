package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/internal/build"
)

// buildInfo is the metric overrule_build_info. During a rollout several builds
// report it.
func buildInfo(b build.Info) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_build_info",
		Help: "1, labelled with the version, revision and Go version of the build.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go,
		},
	}, func() float64 { return 1 })
}
