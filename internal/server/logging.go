package server

import (
	stdlog "log"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func zapLevel(level int) zapcore.Level { return zapcore.Level(level) } //nolint:gosec // -1 to 2

// errorLog returns a logger for what net/http reports about connections, which is
// logged at debug level.
func errorLog(log logr.Logger) *stdlog.Logger {
	return stdlog.New(logWriter{log.V(1)}, "", 0)
}

type logWriter struct{ log logr.Logger }

// Write implements io.Writer.
func (l logWriter) Write(p []byte) (int, error) {
	l.log.Info("connection error", "err", string(p))
	return len(p), nil
}

func newLogger(o options) logr.Logger {
	level := map[string]int{"error": 2, "info": 0, "debug": -1}[o.logLevel]
	encoder := zap.JSONEncoder()
	if o.logFormat == "text" {
		encoder = zap.ConsoleEncoder()
	}
	return zap.New(encoder, zap.Level(zapLevel(level)), zap.StacktraceLevel(zapcore.DPanicLevel),
		func(z *zap.Options) { z.TimeEncoder = zapcore.RFC3339NanoTimeEncoder })
}
