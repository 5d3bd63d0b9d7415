import type { AddressFamily } from '../dns/text/address.ts'
import type { OvnSettings } from '../operator/egress/ovn/ovn-settings.ts'
import type { OvsdbTlsFiles } from '../ovsdb/open-socket.ts'
import { scanRemotes } from '../ovsdb/remote.ts'
import { flagsOf } from './args.ts'
import { BadValue, type Get, networks, wordsOf } from './flag-values.ts'

export const OVN_FLAGS = flagsOf(`
  --ovn-nb LIST | unix:/var/run/ovn/ovnnb_db.sock | comma-separated list of the servers of OVN Northbound: tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH
  --ovn-nb-ca FILE | | for ssl: PEM file of the authority of the servers
  --ovn-nb-cert FILE | | for ssl: PEM file of the operator's certificate
  --ovn-nb-key FILE | | for ssl: PEM file of the key of the operator's certificate
  --ovn-nb-server-name NAME | (HOST) | for ssl: name in the certificate of the servers
  --ovn-owner NAME | sextant | owner-controller of the address sets; those of other owners are never changed
  --ovn-families LIST | ipv4,ipv6 | comma-separated list of the address families with address sets
`)

const FAMILIES: ReadonlyMap<string, AddressFamily> = new Map([
  ['ipv4', 1],
  ['ipv6', 2],
])
/** It is a part of ids that have colons between their parts. */
const OWNER = /^[A-Za-z0-9][-A-Za-z0-9._]{0,62}$/

/** Reads the values of OVN_FLAGS. Throws BadValue. */
export function readOvnArgs(
  get: Get,
  { namespace, nameKind }: Pick<OvnSettings, 'namespace' | 'nameKind'>,
): OvnSettings {
  const remotes = scanRemotes(get('ovn-nb').replaceAll(' ', ''))
  if (remotes === undefined) {
    const want = 'a comma list of tcp:HOST:PORT, ssl:HOST:PORT and unix:PATH'
    throw new BadValue('ovn-nb', get('ovn-nb'), want)
  }
  const owner = get('ovn-owner')
  if (!OWNER.test(owner)) {
    throw new BadValue('ovn-owner', owner, '1 to 63 of letters, digits, ".", "_" and "-"')
  }
  return {
    namespace,
    nameKind,
    remotes,
    tls: remotes.some(({ kind }) => kind === 'ssl') ? tlsFiles(get) : undefined,
    owner,
    families: families(get('ovn-families')),
    clusterNetworks: networks('cluster-cidr', get),
    allowedNetworks: networks('egress-allow', get),
  }
}

function tlsFiles(get: Get): OvsdbTlsFiles {
  const file = (name: string): string => {
    if (get(name) === '') throw new BadValue(name, '', 'a file, because --ovn-nb has ssl')
    return get(name)
  }
  return {
    authority: file('ovn-nb-ca'),
    certificate: file('ovn-nb-cert'),
    key: file('ovn-nb-key'),
    serverName: get('ovn-nb-server-name'),
  }
}

function families(text: string): readonly AddressFamily[] {
  const found = wordsOf(text).map((word) => FAMILIES.get(word))
  const known = found.filter((family) => family !== undefined)
  if (known.length > 0 && known.length === found.length) return [...new Set(known)]
  throw new BadValue('ovn-families', text, 'ipv4, ipv6 or both, separated by a comma')
}
