package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Files of a control plane.
const (
	// caFile and keyFile are the authority of clients; its key also signs tokens of
	// service accounts.
	caFile  = "ca.crt"
	keyFile = "ca.key"
	// servingFile is the certificate of the API server, with its authority.
	servingFile = "apiserver.crt"
)

// masters is the group of cluster admins.
const masters = "system:masters"

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, data, err
}

func (p plane) createCA() error {
	key, data, err := newKey()
	if err != nil {
		return fmt.Errorf("create the authority of clients: %w", err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "clients"}, key)
	if err != nil {
		return fmt.Errorf("create the authority of clients: %w", err)
	}
	return errors.Join(
		os.WriteFile(p.file(keyFile), data, 0o600),
		os.WriteFile(p.file(caFile), pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw}), 0o600))
}

// sign returns the configuration and the kubeconfig of a user of the API server, with a
// new certificate.
func (p plane) sign(name string, groups []string) (*rest.Config, []byte, error) {
	authority, err := cert.CertsFromFile(p.file(caFile))
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for user %s: %w", name, err)
	}
	signer, err := keyutil.PrivateKeyFromFile(p.file(keyFile))
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for user %s: %w", name, err)
	}
	key, keyData, err := newKey()
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for user %s: %w", name, err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority[0], key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for user %s: %w", name, err)
	}
	serving, err := os.ReadFile(p.file(servingFile))
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for user %s: %w", name, err)
	}
	config := &rest.Config{Host: "https://127.0.0.1:" + p.argument(apiServerProgram, "secure-port"), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: serving, CertData: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed}), KeyData: keyData,
	}}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	})
	return config, kubeconfig, err
}
