import { AZURE } from './azure/azure.ts'
import { BIND } from './bind.ts'
import { GDNSD } from './gdnsd/gdnsd.ts'
import type { ImportFormat } from './import-format.ts'
import { OCTODNS } from './octodns/octodns.ts'
import { POWERDNS } from './powerdns/powerdns.ts'
import { ROUTE53 } from './route53/route53.ts'

/** All formats, in the order of the documentation. */
export const FORMATS: readonly ImportFormat[] = [BIND, ROUTE53, OCTODNS, GDNSD, POWERDNS, AZURE]
