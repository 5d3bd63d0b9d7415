import type { DirectAnswer, SectionSignatures } from './direct-answer.ts'
import type { Query } from './query.ts'
import { Section } from './section.ts'

/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10

/** The octets of a direct answer without compression. */
export function directOctets(query: Query, direct: DirectAnswer): number {
  let octets = setOctets(query, direct)
  let owner = query.qnameOctets
  let signature = 0
  for (let i = 0; i < direct.aliasCount; i++) {
    const target = direct.targets[i]!.qnameOctets
    octets += owner + RR_FIXED_OCTETS + target
    const end = signature + direct.aliasSignatures[i]!
    octets += signatureOctets(direct, direct.answerSignatures, signature, end, owner)
    signature = end
    owner = target
  }
  return octets + soaOctets(query, direct) + proofOctets(query, direct)
}

function setOctets(query: Query, direct: DirectAnswer): number {
  const { setCount, setSignatures, answerSignatures } = direct
  if (setCount === 0) return 0
  const owner = direct.lastName(query).qnameOctets
  const end = answerSignatures.count
  const signatures = signatureOctets(direct, answerSignatures, end - setSignatures, end, owner)
  return setCount * (owner + RR_FIXED_OCTETS) + direct.setOctets + signatures
}

function soaOctets(query: Query, direct: DirectAnswer): number {
  if (direct.soaOffset === 0) return 0
  const { soaSignatures, answerSignatures, authoritySignatures } = direct
  const signatures = direct.soaSection === Section.Answer ? answerSignatures : authoritySignatures
  const apex = query.qnameOctets - query.labelOffset[direct.soaLabel]!
  const soa = apex + RR_FIXED_OCTETS + direct.rdataOctets(direct.soaOffset)
  return soa + signatureOctets(direct, signatures, 0, soaSignatures, apex)
}

function proofOctets(query: Query, direct: DirectAnswer): number {
  const { proofOwner, proofOwnerOctets, proofSignatures, authoritySignatures } = direct
  let octets = 0
  let signature = direct.soaOffset === 0 ? 0 : direct.soaSignatures
  for (let i = 0; i < direct.proofCount; i++) {
    const label = proofOwner[i] === 0 ? proofOwnerOctets[i]! : direct.proofLabel
    const suffix = query.qnameOctets - query.labelOffset[label]!
    const owner = proofOwner[i] === 0 ? suffix : suffix + proofOwnerOctets[i]!
    const end = signature + proofSignatures[i]!
    octets += owner + RR_FIXED_OCTETS + direct.rdataOctets(direct.proofOffset[i]!)
    octets += signatureOctets(direct, authoritySignatures, signature, end, owner)
    signature = end
  }
  return octets
}

/** The octets of signatures with owners of `owner` octets. */
function signatureOctets(
  direct: DirectAnswer,
  { offset }: SectionSignatures,
  from: number,
  end: number,
  owner: number,
): number {
  let octets = 0
  for (let i = from; i < end; i++)
    octets += owner + RR_FIXED_OCTETS + direct.rdataOctets(offset[i]!)
  return octets
}
