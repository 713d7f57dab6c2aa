package process

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is the resource usage of a program so far. Unlike elapsed time, it hardly
// depends on other programs of the machine.
type Usage struct {
	CPU  time.Duration // with a resolution of some milliseconds
	Peak uint64        // maximum resident memory in bytes
	Held uint64        // current resident memory in bytes
}

// Usage reads /proc, so it needs Linux. It fails if the program has stopped.
func (p *Process) Usage() (Usage, error) {
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		return Usage{}, fmt.Errorf("look at %s (pid %d): %w", p.name, p.PID(), err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("look at %s (pid %d): %w", p.name, p.PID(), err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("look at %s (pid %d): %w", p.name, p.PID(), err)
	}
	return Usage{CPU: time.Duration(stat.CPUTime() * float64(time.Second)), Peak: status.VmHWM, Held: status.VmRSS}, nil
}
