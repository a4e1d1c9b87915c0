import { X509Certificate } from 'node:crypto';
import type { Secret } from '../../../api/kubernetes.ts';
import {
  KUBELET_CA_CONFIG_MAP,
  KUBELET_CA_KEY,
  NODE_PULL_SECRET,
  PULL_SECRET_KEY,
} from '../../../api/names.ts';
import {
  dataDigest,
  kubeletCADigest,
  pullSecretVersion,
  registryOfKey,
} from '../../../api/node-certificates.ts';
import { kubeletRefusal } from '../../../image/registry/kubelet-credentials.ts';
import type { PutFile } from '../../files/put-file.ts';

/** The object is not the one that the operator named, or holds what no node should be given. Never quotes it. */
export class CertificatesRefused extends Error {
  override readonly name = 'CertificatesRefused';
}

/** Files of root's to put on the node, by absolute path. */
export type CertificateFiles = ReadonlyMap<string, PutFile>;

type Data = Readonly<Record<string, string>>;

/** Where container runtimes look for the CAs of a registry (containers-certs.d(5); Docker's certs.d). */
const REGISTRY_DIRECTORIES = ['/etc/containers/certs.d', '/etc/docker/certs.d'];
/** The name under which Shale writes: an admin's own files beside it are left alone. */
const REGISTRY_FILE = 'shale-ca.crt';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * @param data of the ConfigMap. @param version what the operator named.
 * @returns a file per registry and directory. @throws CertificatesRefused
 */
export function registryCAFiles(data: Data, version: string): CertificateFiles {
  assertVersion('registry CAs', dataDigest(data), version);
  const files = Object.entries(data).flatMap(([key, pem]) => {
    const registry = registryOfKey(key);
    if (registry === undefined) {
      throw new CertificatesRefused(
        `registry CAs: key ${JSON.stringify(key)} is not a registry; expected host or host..port`,
      );
    }
    return REGISTRY_DIRECTORIES.map(
      (directory) => [`${directory}/${registry}/${REGISTRY_FILE}`, fileOf(pem, 0o644)] as const,
    );
  });
  return new Map(files);
}

/**
 * The CA by which the kubelet knows its clients; it reads the file again by itself when it changes. A bundle that it
 * couldn't read would keep it from its next start, so it has to be one.
 *
 * @param data of the ConfigMap. @param version what the operator named. @param path of the kubelet's --client-ca-file.
 * @throws CertificatesRefused
 */
export function kubeletCAFiles(data: Data, version: string, path: string): CertificateFiles {
  assertVersion('kubelet CA', kubeletCADigest(data), version);
  const bundle = data[KUBELET_CA_KEY] ?? '';
  const certificates = bundle.match(CERTIFICATE) ?? [];
  if (certificates.length === 0 || !certificates.every(isCertificate)) {
    throw new CertificatesRefused(
      `kubelet CA: ${KUBELET_CA_KEY} of ConfigMap ${KUBELET_CA_CONFIG_MAP} is not a bundle of PEM certificates`,
    );
  }
  return new Map([[path, fileOf(bundle, 0o644)]]);
}

/**
 * The node's own registry credentials.
 *
 * @param version what the operator named. @param path where the kubelet and the daemon read them.
 * @throws CertificatesRefused
 */
export function pullSecretFiles(secret: Secret, version: string, path: string): CertificateFiles {
  assertVersion('pull secret', pullSecretVersion(secret.metadata), version);
  const contents = Buffer.from(secret.data?.[PULL_SECRET_KEY] ?? '', 'base64');
  const why = kubeletRefusal(contents.toString('utf8'));
  if (why !== undefined) {
    throw new CertificatesRefused(`pull secret: ${PULL_SECRET_KEY} of Secret ${NODE_PULL_SECRET} ${why}`);
  }
  return new Map([[path, { contents, mode: 0o600 }]]);
}

function assertVersion(what: string, actual: string, named: string): void {
  if (actual === named) return;
  throw new CertificatesRefused(
    `${what}: found ${actual}, the operator named ${named}; it may have changed since`,
  );
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

function fileOf(text: string, mode: number): PutFile {
  return { contents: Buffer.from(text), mode };
}

/** Where the node reads what lies at no fixed place. */
export interface CertificatePaths {
  readonly kubeletCA: string;
  readonly pullSecret: string;
}

/** MCO's; the pull secret's is the kubelet's own default. */
export const defaultCertificatePaths: CertificatePaths = {
  kubeletCA: '/etc/kubernetes/kubelet-ca.crt',
  pullSecret: '/var/lib/kubelet/config.json',
};
