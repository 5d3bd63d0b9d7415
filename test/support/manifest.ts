/** The manifest of a DNSRecord: one address at `host`. */
export function recordManifest(
  name: string,
  address: string,
  host = `${name}.k.example.com`,
): string {
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: ${name}
spec:
  rootHost: ${host}
  endpoints:
  - dnsName: ${host}
    recordType: A
    targets:
    - ${address}
`
}

/** The manifest of a DNSHealthCheckProbe for `address`, an address of the record `name`. */
export function probeManifest(
  name: string,
  address: string,
  isHealthy: boolean,
  namespace = 'default',
): string {
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: ${name}-${address}
  namespace: ${namespace}
  labels: { kuadrant.io/health-probes-owner: ${name} }
spec: { address: ${address} }
status: { healthy: ${isHealthy} }
`
}
