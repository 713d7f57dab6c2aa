package server

import (
	stdlog "log"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
)

func zapLevel(level int) zapcore.Level { return zapcore.Level(level) } //nolint:gosec // -1 to 2

// errorLog takes the lines that net/http writes about broken connections.
func errorLog(log logr.Logger) *stdlog.Logger {
	return stdlog.New(lines{log.V(1)}, "", 0)
}

type lines struct{ log logr.Logger }

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l.log.Info("connection", "error", string(p))
	return len(p), nil
}
