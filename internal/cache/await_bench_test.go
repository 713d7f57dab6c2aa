package cache

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAwait measures the CPU time per second of reviews that wait while a watch is
// disconnected.
func BenchmarkAwait(b *testing.B) {
	for _, n := range []int{1, 64, 2048} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := []string{"customresourcedefinitions"}
			for i := range 40 {
				names = append(names, fmt.Sprintf("resource-%02d", i))
			}
			w, all := newTestWatcher(names...)
			ctx, cancel := context.WithCancel(b.Context())
			startUpdateWaiting(ctx, w)
			for b.Loop() {
				for _, c := range all {
					c.watchClosed()
				}
				var waiting sync.WaitGroup
				began, used := time.Now(), cpu()
				for range n {
					waiting.Go(func() { w.Await(ctx) })
				}
				time.Sleep(time.Second)
				for _, c := range all {
					c.watchOpened(false)
				}
				waiting.Wait()
				b.ReportMetric(float64((cpu()-used).Microseconds())/1000/time.Since(began).Seconds(), "cpu-ms/s")
			}
			cancel()
		})
	}
}

func cpu() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
