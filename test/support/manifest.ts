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
