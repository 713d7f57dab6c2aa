package process

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a program has used so far. Unlike the time that passes, it
// hardly depends on what else a machine does.
type Usage struct {
	CPU  time.Duration // in steps of some milliseconds
	Peak uint64        // the most memory that was resident, in bytes
	Held uint64        // the memory that is resident now, in bytes
}

// Usage reads /proc, which other systems than Linux do not have. It fails if
// the program has ended.
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
