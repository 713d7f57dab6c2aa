package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

const (
	// heapShare is how much of the container's memory is the Go runtime's. The
	// kernel counts more than that: sockets, and files that are mapped.
	heapRatio = 0.9
	// resized is how often is asked for the limit: a pod can be resized in place.
	memoryRefreshInterval = time.Minute
)

// limitMemory makes the collector work harder before the kernel kills, until ctx
// ends. A GOMEMLIMIT that is set stays; without a limit there is none to keep.
// Where it cannot be read the server goes without, and says so: it can judge.
func setMemoryLimit(ctx context.Context, log logr.Logger, provider memlimit.Provider) {
	limit := func() (uint64, error) {
		n, err := provider()
		if errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported) {
			return 0, memlimit.ErrNoLimit
		}
		return n, err
	}
	_, err := memlimit.Set(
		memlimit.WithProvider(limit), memlimit.WithRatio(heapRatio), memlimit.WithRefreshInterval(ctx, memoryRefreshInterval),
		memlimit.WithLogger(slog.New(logr.ToSlogHandler(log))),
	)
	if err != nil {
		log.Info("the collector knows no memory limit; set GOMEMLIMIT to a little less than the container's", "cause", err.Error())
	}
}
