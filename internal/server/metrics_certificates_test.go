package server

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/certs"
)

func fixedExpiries(e map[string]time.Time) expiries {
	return func() map[string]time.Time { return e }
}

func TestExpiryCollector(t *testing.T) {
	e := newExpiryCollector(
		fixedExpiries(map[string]time.Time{certs.NameServing: time.Unix(1767225600, 0), certs.NameAuthority: time.Unix(1798761600, 5)}),
		fixedExpiries(map[string]time.Time{certs.NameCallers: time.Unix(1, 0)}), fixedExpiries(nil))
	require.NoError(t, testutil.CollectAndCompare(e, strings.NewReader(`
# HELP overrule_certificate_expiry_timestamp_seconds Expiry of certificates in use, in seconds since 1970: the serving certificate, the authority that signed it, the certificate for other replicas, and the client CA that expires first.
# TYPE overrule_certificate_expiry_timestamp_seconds gauge
overrule_certificate_expiry_timestamp_seconds{certificate="authority"} 1.7987616e+09
overrule_certificate_expiry_timestamp_seconds{certificate="callers"} 1
overrule_certificate_expiry_timestamp_seconds{certificate="serving"} 1.7672256e+09
`)))
	problems, err := testutil.CollectAndLint(e)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestExpirySources(t *testing.T) {
	for way, want := range map[string]int{certificatesSelf: 1, certificatesFiles: 2, certificatesCertManager: 2} {
		i := newTestProvider(t, "--certificates="+way)
		assert.Len(t, expirySources(i, nil), want, way)
		assert.Len(t, expirySources(i, new(certs.ClientAuth)), want+1, way)
	}
}
