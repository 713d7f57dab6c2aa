package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValuesOutOfRangeAreRefusedBeforeTheStart(t *testing.T) {
	for arg, want := range map[string]string{
		"--service-port=0":                `--service-port=0 is no port: give one from 1 to 65535`,
		"--service-port=-1":               `--service-port=-1 is no port: give one from 1 to 65535`,
		"--service-port=65536":            `--service-port=65536 is no port: give one from 1 to 65535`,
		"--max-concurrent=-1":             `--max-concurrent=-1 is negative: 0 is the default`,
		"--max-queue=-3":                  `--max-queue=-3 is negative: 0 is the default`,
		"--cert-validity=0s":              `--cert-validity=0s is no life of a certificate: give one above 0, or leave the flag out`,
		"--cert-validity=-1h":             `--cert-validity=-1h0m0s is no life of a certificate: give one above 0, or leave the flag out`,
		"--ca-validity=0s":                `--ca-validity=0s is no life of a certificate: give one above 0, or leave the flag out`,
		"--ca-validity=-1h":               `--ca-validity=-1h0m0s is no life of a certificate: give one above 0, or leave the flag out`,
		"--cert-validity=4000h":           `--cert-validity=4000h0m0s is more than a third of --ca-validity=8760h0m0s: lower the one, or raise the other`,
		"--ca-validity=2159h":             `--cert-validity=720h0m0s is more than a third of --ca-validity=2159h0m0s: lower the one, or raise the other`,
		"--cert-validity=4s":              `--cert-validity=4s is too short: give 5s or more`,
		"--metrics-bind-address=x":        `--metrics-bind-address="x" is no address to listen on, give HOST:PORT or :PORT: address x: missing port in address`,
		"--webhook-bind-address=":         `--webhook-bind-address="" is no address to listen on, give HOST:PORT or :PORT: missing port in address`,
		"--webhook-bind-address=99999":    `--webhook-bind-address="99999" is no address to listen on, give HOST:PORT or :PORT: address 99999: missing port in address`,
		"--health-bind-address=:99999":    `--health-bind-address=":99999" is no address to listen on, give HOST:PORT or :PORT: address 99999: invalid port`,
		"--health-bind-address=0":         `--health-bind-address="0" is no address to listen on, give HOST:PORT or :PORT: address 0: missing port in address`,
		"--webhook-bind-address=[::1:443": `--webhook-bind-address="[::1:443" is no address to listen on, give HOST:PORT or :PORT: address [::1:443: missing ']' in address`,
	} {
		t.Run(arg, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs([]string{arg, "--kubeconfig", "/nowhere"})
			cmd.SetOut(&bytes.Buffer{})
			assert.EqualError(t, cmd.ExecuteContext(t.Context()), want)
		})
	}
}

func TestNamesThatNoObjectCanHaveAreRefused(t *testing.T) {
	for _, flag := range []string{"service", "namespace"} {
		for _, value := range []string{"Bad_Name", "", "a.b"} {
			o := parsed(t, "--"+flag+"="+value)
			assert.ErrorContains(t, o.checkRanges(t.Context()), "--"+flag+`="`+value+`" is no name: `)
		}
	}
}

func TestNamesThatNoPodOrCertificateCanHaveAreRefused(t *testing.T) {
	for _, flag := range []string{"pod-name", "certificate-name"} {
		for _, value := range []string{"A_B", "a b", "-a", "a/b"} {
			o := parsed(t, "--"+flag+"="+value)
			assert.ErrorContains(t, o.checkRanges(t.Context()), "--"+flag+`="`+value+`" is no name: a lowercase RFC 1123 subdomain`)
		}
		for _, value := range []string{"a", "a.b-c", ""} {
			o := parsed(t, "--"+flag+"="+value)
			assert.NoError(t, o.checkRanges(t.Context()), value)
		}
	}
}

func TestValuesAtTheEndsOfTheirRangeAreTaken(t *testing.T) {
	for _, args := range [][]string{
		{"--service-port=1"},
		{"--service-port=65535"},
		{"--max-concurrent=0", "--max-queue=0"},
		{"--metrics-bind-address=0"},
		{"--ca-validity=2160h"},
		{"--ca-validity=15s", "--cert-validity=5s"},
		{"--metrics-bind-address=127.0.0.1:0", "--health-bind-address=[::1]:8081", "--webhook-bind-address=localhost:65535"},
	} {
		o := parsed(t, args...)
		require.NoError(t, o.checkRanges(t.Context()), args)
	}
}
