package server

import (
	"cmp"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cliflag"
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
	enforcement     guard.Enforcement
	audit           bool
	blastRadius     int
	failurePolicy   admissionregistrationv1.FailurePolicyType
	manageWebhooks  bool
	leaderElect     bool
	logLevel        string
	logFormat       string
	maxConcurrent   int
	maxQueue        int
	maxBytes        resource.QuantityValue
	maxObjectBytes  resource.QuantityValue
	certificates    string
	certDir         string
	certificateName string
	caValidity      time.Duration
	certValidity    time.Duration
	clientCA        string
	clientSubjects  []string
	pathTokens      string
	drainPeriod     time.Duration
	refresh         refreshOptions
	canaryInterval  time.Duration
	canaryNamespace string
	arm             bool
	podName         string
}

// NewCommand returns the command of the server, with its subcommands.
func NewCommand() *cobra.Command {
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
			o.complete()
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.bind(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("audit", "enforcement")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cliflag.Error(err) })
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
	cliflag.EnumVar(f, &o.enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "deny; warn: allow everything and tell what would have been denied; or audit: the same, but tell it in the audit log, metrics and Events alone")
	f.BoolVar(&o.audit, "audit", false, "short for --enforcement=audit, for a first roll-out")
	f.IntVar(&o.blastRadius, "blast-radius-limit", 0, "paths whose effective policy one write may change without an acknowledgement (0: no limit)")
	cliflag.EnumVar(f, &o.failurePolicy, "failure-policy", admissionregistrationv1.Fail,
		[]admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}, "Fail or Ignore: what the API server does with a write when no replica can evaluate it")
	f.BoolVar(&o.manageWebhooks, "manage-webhooks", true, "write the webhook configurations and keep their rules and caBundle right")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "elect which replica writes the webhook configurations")
	cliflag.EnumVar(f, &o.logLevel, "log-level", "info", []string{"error", "info", "debug"}, "error, info or debug (debug has a line for each decision)")
	cliflag.EnumVar(f, &o.logFormat, "log-format", "json", []string{"json", "text"}, "json or text")
	f.IntVar(&o.maxConcurrent, "max-concurrent", 0, "reviews judged at once (0: two for each CPU)")
	f.IntVar(&o.maxQueue, "max-queue", 0, "reviews that wait for a place before others are sent away (0: 1024)")
	f.Var(&o.maxBytes, "max-bytes", "bytes of reviews held at once, such as 64Mi; more wait to be read (0: 64Mi)")
	f.Var(&o.maxObjectBytes, "max-object-bytes", "bytes of JSON of the largest custom resource that etcd stores; larger ones are denied (0: 1536Ki, etcd's default)")
	cliflag.EnumVar(f, &o.certificates, "certificates", certificatesSelf, []string{certificatesSelf, certificatesFiles, certificatesCertManager}, "where the serving certificate comes from: self (an authority of its own), files, or cert-manager (files that cert-manager issues)")
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

// complete sets the options for which there is a short flag.
func (o *options) complete() {
	if o.audit {
		o.enforcement = guard.EnforceAudit
	}
}
