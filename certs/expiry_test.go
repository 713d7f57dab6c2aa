package certs

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExpiriesOfEachSource(t *testing.T) {
	d := newTestAuthority(t)
	assert.Empty(t, d.Expiries(), "nothing is served yet")
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, map[string]time.Time{NameServing: at(10), NameAuthority: at(90)}, d.Expiries())

	m, ca := newTestFiles(t, nil), newTestSigner(t, epoch)
	assert.Empty(t, m.Expiries())
	files := issueFiles(t, ca, 0)
	files[CAFile] = bytes.Join([][]byte{newTestSigner(t, at(5)).certPEM, ca.certPEM}, nil)
	m.swap(files)
	m.reloadNow()
	assert.Equal(t, map[string]time.Time{NameServing: at(10), NameAuthority: at(90)}, m.Expiries(), "of the authority that signed it, not of another one")

	m = newTestFiles(t, nil)
	delete(files, CAFile)
	m.swap(files)
	m.reloadNow()
	assert.Equal(t, map[string]time.Time{NameServing: at(10)}, m.Expiries())

	g := newAuthServer(t, nil)
	assert.Empty(t, g.Expiries())
	g.write(bytes.Join([][]byte{newTestSigner(t, at(5)).certPEM, ca.certPEM}, nil))
	g.reload()
	assert.Equal(t, map[string]time.Time{NameCallers: at(90)}, g.Expiries(), "the first expiry")
}
