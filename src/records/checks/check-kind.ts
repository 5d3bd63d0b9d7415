import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { FieldPlace } from '../validate/fields.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** Port of a check that names none: that of the CustomResourceDefinition, for HTTPS. */
export const PORT_DEFAULT = 443

/** A kind of health check. `Part`: what its checks have beside the fields of all checks. */
export interface CheckKind<Part extends object> {
  /** Fields that other kinds do not have. */
  readonly fields: readonly string[]
  /** True if the request has a host name, which a record with a wildcard host does not have. */
  readonly sendsHostName: boolean
  /** `place`: place of `spec`. Throws RefusedError at the first fault. */
  readonly scan: (spec: Mapping, place: FieldPlace) => Part
}
