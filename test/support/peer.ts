import { execFile, execFileSync } from 'node:child_process'

/** Debian's package of each peer that tests question. */
const PACKAGES: Readonly<Record<string, string>> = {
  dig: 'bind9-dnsutils',
  kdig: 'knot-dnsutils',
  drill: 'ldnsutils',
  kubectl: 'kubernetes-client',
  nsupdate: 'bind9-dnsutils',
  named: 'bind9',
  'named-rrchecker': 'bind9',
  knotd: 'knot',
  nsd: 'nsd',
  unbound: 'unbound',
  delv: 'bind9-dnsutils',
  'dnssec-keygen': 'bind9-utils',
  'dnssec-signzone': 'bind9-utils',
  'dnssec-verify': 'bind9-utils',
  'ldns-verify-zone': 'ldnsutils',
  kzonecheck: 'knot-dnssecutils',
  'ldns-keygen': 'ldnsutils',
  keymgr: 'knot',
  conntrack: 'conntrack',
  'iptables-nft': 'iptables',
  'iptables-legacy': 'iptables',
  'ovsdb-server': 'openvswitch-common',
  'ovn-northd': 'ovn-central',
  man: 'man-db',
  nft: 'nftables',
  ip: 'iproute2',
  sysctl: 'procps',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  'systemd-analyze': 'systemd',
  systemctl: 'systemd',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  'dpkg-deb': 'dpkg',
  'apt-get': 'apt',
  chromium: 'chromium',
  fstrm_capture: 'fstrm-bin',
  nginx: 'nginx-light libnginx-mod-stream',
  'dnstap-read': 'bind9-dnsutils',
}

export function isInstalled(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Options for a subtest that needs `tools`: skipped with the reason where one is missing on a user's
 * machine; in CI it runs, and so fails.
 */
export function needs(...tools: readonly string[]): { skip?: string } {
  const missing = tools.filter((tool) => !isInstalled(tool))
  if (missing.length === 0 || process.env.CI === 'true') return {}
  const names = missing.map((tool) => `${tool} (Debian: ${PACKAGES[tool] ?? tool})`)
  return { skip: `not installed: ${names.join(', ')}` }
}

/** Options for a subtest that makes namespaces of the kernel: as `needs`, for root. */
export function needsRoot(): { skip?: string } {
  if (process.getuid?.() === 0 || process.env.CI === 'true') return {}
  return { skip: 'only root can make namespaces of the kernel' }
}

/** Runs a tool to its end, within `timeoutMs`; resolves to what it printed, whatever its exit code. */
export function run(
  tool: string,
  args: readonly string[],
  timeoutMs = 120_000,
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile(tool, [...args], { timeout: timeoutMs }, (error, stdout, stderr) => {
      // One that had ended when its time was up has a code, but what it printed may be lost.
      if (error?.killed === true || (error !== null && typeof error.code !== 'number'))
        return reject(error)
      const code = error === null ? 0 : Number(error.code)
      resolve({ code, stdout, stderr })
    })
  })
}
