package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLoggerLevelAndFormat(t *testing.T) {
	for level, enabled := range map[string][2]bool{"error": {false, false}, "info": {true, false}, "debug": {true, true}} {
		log := newLogger(options{logLevel: level, logFormat: "json"})
		assert.Equal(t, [2]bool{log.Enabled(), log.V(1).Enabled()}, enabled, level)
	}
	assert.True(t, newLogger(options{logLevel: "info", logFormat: "text"}).Enabled())
}
