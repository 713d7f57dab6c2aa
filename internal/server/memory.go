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
	// heapRatio is the part of the container's memory limit that the Go runtime may
	// use. The kernel counts more: sockets and mapped files.
	heapRatio = 0.9
	// memoryRefreshInterval is how often the limit is read: pods can be resized in
	// place.
	memoryRefreshInterval = time.Minute
)

// setMemoryLimit sets GOMEMLIMIT from the container's limit, until ctx ends, so that
// garbage is collected before the kernel kills the process. A GOMEMLIMIT that is
// already set stays. If the limit cannot be read, that is logged, and there is none.
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
		log.Info("cannot read the memory limit; set GOMEMLIMIT to 90% of the container's limit", "err", err.Error())
	}
}
