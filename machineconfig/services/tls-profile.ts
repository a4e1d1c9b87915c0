import type { TlsSecurityProfile } from '../../api/kubelet-config.ts';
import { quote, type Validated } from '../problem.ts';

/**
 * Cipher suites of TLS that a kubelet supports (crypto/tls): their names in OpenSSL, and those of IANA, which kubelets
 * read.
 */
const SUITES: Readonly<Record<string, string>> = {
  TLS_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256': 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256': 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384': 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384': 'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305': 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'ECDHE-RSA-CHACHA20-POLY1305': 'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-SHA256': 'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256',
  'ECDHE-RSA-AES128-SHA256': 'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256',
  'ECDHE-ECDSA-AES128-SHA': 'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'ECDHE-RSA-AES128-SHA': 'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'ECDHE-ECDSA-AES256-SHA': 'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'ECDHE-RSA-AES256-SHA': 'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'AES128-GCM-SHA256': 'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'AES256-GCM-SHA384': 'TLS_RSA_WITH_AES_256_GCM_SHA384',
  'AES128-SHA256': 'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'AES128-SHA': 'TLS_RSA_WITH_AES_128_CBC_SHA',
  'AES256-SHA': 'TLS_RSA_WITH_AES_256_CBC_SHA',
  'DES-CBC3-SHA': 'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
};
const OF_TLS_1_3 = 3;
/** How many of the suites each profile has: every one has those of the stricter profile and more (Mozilla, 5.8). */
const OF_INTERMEDIATE = 9;

/** The two fields of a KubeletConfiguration. */
type TlsFields = Validated<{
  fields: { readonly tlsMinVersion: string; readonly tlsCipherSuites: readonly string[] };
}>;

/** @returns a profile as settings of the kubelet's server, or what is wrong with a custom one. */
export function tlsFields({ type = 'Intermediate', custom }: TlsSecurityProfile): TlsFields {
  const suites = Object.values(SUITES);
  const of = (tlsMinVersion: string, tlsCipherSuites: readonly string[]) =>
    ({ ok: true, fields: { tlsMinVersion, tlsCipherSuites } }) as const;
  switch (type) {
    case 'Old':
      return of('VersionTLS10', suites);
    case 'Intermediate':
      return of('VersionTLS12', suites.slice(0, OF_INTERMEDIATE));
    case 'Modern':
      return of('VersionTLS13', suites.slice(0, OF_TLS_1_3));
    case 'Custom':
      return customFields(custom ?? undefined);
  }
}

function customFields(custom: TlsSecurityProfile['custom'] & (object | undefined)): TlsFields {
  const { ciphers = [], minTLSVersion, groups } = custom ?? {};
  const path = 'spec.tlsSecurityProfile.custom';
  const problems = ciphers
    .filter((cipher) => !Object.hasOwn(SUITES, cipher))
    .map((cipher) => ({
      path: `${path}.ciphers`,
      reason: `has ${quote(cipher)}, which no kubelet supports`,
      expected: "cipher suites of Go's crypto/tls by their names in OpenSSL",
    }));
  if (groups !== undefined) {
    problems.push({
      path: `${path}.groups`,
      reason: 'is not supported: the kubelet chooses the groups of its key exchange',
      expected: 'to be omitted',
    });
  }
  if (ciphers.length === 0) {
    problems.push({ path: `${path}.ciphers`, reason: 'is empty', expected: 'at least one cipher suite' });
  }
  if (minTLSVersion === undefined) {
    problems.push({ path: `${path}.minTLSVersion`, reason: 'is missing', expected: 'such as VersionTLS12' });
    return { ok: false, problems };
  }
  if (problems.length > 0) return { ok: false, problems };
  return {
    ok: true,
    fields: {
      tlsMinVersion: minTLSVersion,
      tlsCipherSuites: ciphers.flatMap((cipher) => SUITES[cipher] ?? []),
    },
  };
}
