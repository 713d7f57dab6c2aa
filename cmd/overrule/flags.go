package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/guard"
)

// options are the flags.
type options struct {
	kubeconfig      string
	namespace       string
	service         string
	servicePort     int32
	webhookAddress  string
	metricsAddress  string
	healthAddress   string
	pprofAddress    string
	enforcement     string
	audit           bool
	blastRadius     int
	failurePolicy   string
	manageWebhooks  bool
	leaderElect     bool
	logLevel        string
	logFormat       string
	maxConcurrent   int
	maxQueue        int
	maxBytes        resource.QuantityValue
	certificates    string
	certDir         string
	certificateName string
	caValidity      time.Duration
	certValidity    time.Duration
	clientCA        string
	clientSubjects  []string
	pathTokens      string
	drainPeriod     time.Duration
	refresh         refreshing
	canaryInterval  time.Duration
	canaryNamespace string
	arm             bool
	podName         string
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "overrule",
		Short: "Judge writes of policies, routes and gateways by their effective policies",
		Long: `overrule is an admission server for Kubernetes policy attachment. Before a
policy, a route or a gateway is stored it computes what the write does to the
effective policy of every path that it touches, tells the writer, and rejects
what breaks a constraint or takes an override away.

In a cluster it needs no flags. docs/install.md has the manifests, and
docs/operations.md what to do at three in the morning.`,
		Args:          cobra.NoArgs,
		Version:       build.Read().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(o.settle(cmd.Flags()), o.check(), o.checkRanges(cmd.Context())); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.bind(cmd.Flags())
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(uninstallWebhooks(), canaryCommand(), build.Command("overrule", cobra.NoArgs))
	return cmd
}

func (o *options) bind(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "overrule-system"), "namespace of the server: of its Secret and Lease, and exempt from judging")
	f.StringVar(&o.service, "service", "overrule", "Service that leads to the server")
	f.Int32Var(&o.servicePort, "service-port", 443, "port of the Service")
	f.StringVar(&o.webhookAddress, "webhook-bind-address", ":9443", "address to answer admission reviews on (HTTPS)")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", `address to serve /metrics on (HTTP), "0" for none`)
	f.StringVar(&o.healthAddress, "health-bind-address", ":8081", "address to serve /healthz and /readyz on (HTTP)")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "0", `loopback address to serve profiles on (HTTP), such as 127.0.0.1:6060; "0" for none`)
	f.StringVar(&o.enforcement, "enforcement", string(guard.EnforceDeny), "deny; warn: allow everything and tell what would have been denied; or audit: the same, but tell it in the audit log, metrics and Events alone")
	f.BoolVar(&o.audit, "audit", false, "short for --enforcement=audit, for a first roll-out")
	f.IntVar(&o.blastRadius, "blast-radius-limit", 0, "paths whose effective policy one write may change without an acknowledgement (0: no limit)")
	f.StringVar(&o.failurePolicy, "failure-policy", string(admissionregistrationv1.Fail), "Fail or Ignore: what the API server does with a write that nobody can judge")
	f.BoolVar(&o.manageWebhooks, "manage-webhooks", true, "write the webhook configurations and keep their rules and caBundle right")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "elect which replica writes the webhook configurations")
	f.StringVar(&o.logLevel, "log-level", "info", "error, info or debug (debug has a line for each decision)")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.IntVar(&o.maxConcurrent, "max-concurrent", 0, "reviews judged at once (0: four for each CPU)")
	f.IntVar(&o.maxQueue, "max-queue", 0, "reviews that wait for a place before others are sent away (0: 1024)")
	f.Var(&o.maxBytes, "max-bytes", "bytes of reviews held at once, such as 64Mi; more wait to be read (0: 64Mi)")
	f.StringVar(&o.certificates, "certificates", bySelf, "where the serving certificate comes from: self (an authority of its own), files, or cert-manager (files that cert-manager issues)")
	f.StringVar(&o.certDir, "cert-dir", "/etc/overrule/certs", "directory with tls.crt, tls.key and ca.crt, which are read again when they change")
	f.StringVar(&o.certificateName, "certificate-name", "overrule-serving", "Certificate of cert-manager whose Secret is mounted at --cert-dir")
	f.DurationVar(&o.caValidity, "ca-validity", certs.DefaultCAValidity, "life of the certificate authority")
	f.DurationVar(&o.certValidity, "cert-validity", certs.DefaultLeafValidity, "life of a serving certificate, at most a third of the authority's")
	f.StringVar(&o.clientCA, "client-ca-file", "", "authorities that sign the certificates of callers, read again when they change (default: anybody may call)")
	f.StringArrayVar(&o.clientSubjects, "client-subject", nil, "common name or alternative name that a caller's certificate has to have; repeatable (default: any that the authorities signed)")
	f.StringVar(&o.pathTokens, "path-token-file", "", "with --manage-webhooks=false: tokens, one a line, of which the path of a call has to end with one; read again when they change (default: any call is answered)")
	f.DurationVar(&o.drainPeriod, "drain-period", 5*time.Second, "how long to go on answering after a SIGTERM, while clients are sent elsewhere")
	o.refresh.bind(f)
	f.DurationVar(&o.canaryInterval, "canary-interval", time.Minute, "how often the leader tries by dry runs whether writes are judged (0: never)")
	f.StringVar(&o.canaryNamespace, "canary-namespace", "", "namespace of a route that the canary tries, too (default: none; the server has to be given the right)")
	f.BoolVar(&o.arm, "arm", false, "have failurePolicy Fail only while the canary passes, else Ignore")
	f.StringVar(&o.podName, "pod-name", os.Getenv("POD_NAME"), "pod of the server, whose condition tells of the canary")
}

// settle makes one of the flags that say the same. The error tells that they
// do not, and which flags are given that nothing would come of.
func (o *options) settle(f *pflag.FlagSet) error {
	var errs []error
	switch {
	case !o.audit:
	case f.Changed("enforcement") && o.enforcement != string(guard.EnforceAudit):
		errs = append(errs, fmt.Errorf("--audit is short for --enforcement=audit and excludes --enforcement=%s: give one of the two", o.enforcement))
	default:
		o.enforcement = string(guard.EnforceAudit)
	}
	errs = append(errs, o.refresh.settle(f), o.checkGiven(f))
	for _, c := range certificateFlags {
		if f.Changed(c.flag) && slices.Contains(certificateWays, o.certificates) && !slices.Contains(c.ways, o.certificates) {
			errs = append(errs, fmt.Errorf("--%s is for --certificates=%s and excludes --certificates=%s: give one of the two",
				c.flag, strings.Join(c.ways, " or "), o.certificates))
		}
	}
	return errors.Join(errs...)
}

// check returns everything that is wrong with the flags.
func (o *options) check() error {
	var errs []error
	oneOf := func(flag, value string, allowed ...string) {
		if slices.Contains(allowed, value) {
			return
		}
		errs = append(errs, fmt.Errorf("--%s=%q is none of %v", flag, value, allowed))
	}
	oneOf("enforcement", o.enforcement, string(guard.EnforceDeny), string(guard.EnforceWarn), string(guard.EnforceAudit))
	oneOf("failure-policy", o.failurePolicy, string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore))
	oneOf("certificates", o.certificates, certificateWays...)
	oneOf("log-level", o.logLevel, "error", "info", "debug")
	oneOf("log-format", o.logFormat, "json", "text")
	if o.blastRadius < 0 {
		errs = append(errs, fmt.Errorf("--blast-radius-limit=%d is negative: 0 is no limit", o.blastRadius))
	}
	if err := o.checkRoom(); err != nil {
		errs = append(errs, err)
	}
	if o.certDir == "" && (o.certificates == byFiles || o.certificates == byCertManager) {
		errs = append(errs, fmt.Errorf("--certificates=%s needs --cert-dir: name the directory of tls.crt and tls.key", o.certificates))
	}
	if o.certificateName == "" && o.certificates == byCertManager {
		errs = append(errs, errors.New("--certificates=cert-manager needs --certificate-name: name the Certificate"))
	}
	if len(o.clientSubjects) > 0 && o.clientCA == "" {
		errs = append(errs, errors.New("--client-subject needs --client-ca-file: name the authorities that sign the certificates of callers"))
	}
	if slices.Contains(o.clientSubjects, "") {
		errs = append(errs, errors.New("--client-subject is empty: give a name, or leave the flag out"))
	}
	if err := checkProfiling(o.pprofAddress); err != nil {
		errs = append(errs, err)
	}
	if o.drainPeriod < 0 {
		errs = append(errs, fmt.Errorf("--drain-period=%s is negative", o.drainPeriod))
	}
	errs = append(errs, o.checkCanary()...)
	return errors.Join(append(errs, o.checkPath(), o.refresh.check())...)
}
