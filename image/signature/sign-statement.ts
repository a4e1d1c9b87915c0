import { z } from 'zod';
import type { Digest } from '../../api/references.ts';
import {
  type AttachedLayer,
  type AttachedPlace,
  pushAttached,
  readAttached,
  readContent,
  SIGNATURE_ANNOTATION,
} from '../attached-layers.ts';
import type { Repository } from '../reference.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { isSignedBy, parsePublicKey, type SigningKey } from './signing-key.ts';

const ENVELOPE_TYPE = 'application/vnd.dsse.envelope.v1+json';
const STATEMENT_TYPE = 'application/vnd.in-toto+json';
/** A statement about one image is some kilobytes; in the envelope a third more. */
const MAX_ENVELOPE_BYTES = 4 * 1024 * 1024;

/** DSSE, envelope.md: fields that are not named here are nobody's business. */
const Envelope = z.object({
  payloadType: z.string(),
  payload: z.base64().transform((text) => Buffer.from(text, 'base64')),
  signatures: z
    .array(z.object({ sig: z.base64().transform((text) => Buffer.from(text, 'base64')) }))
    .max(100),
});

/**
 * Signs a statement about an image and puts it beside the image, where `cosign verify-attestation` looks for it
 * (cosign, ATTESTATION_SPEC.md). A statement that this key signed already is not signed again.
 *
 * @param given.statement an in-toto statement.
 * @returns whether a signature was made.
 * @throws RegistryError; ContentError where the tag holds something else.
 */
export async function signStatement(
  client: RegistryClient,
  at: Repository,
  given: {
    readonly digest: Digest;
    readonly statement: Uint8Array;
    readonly predicateType: string;
    readonly key: SigningKey;
  },
  signal: AbortSignal,
): Promise<boolean> {
  const { digest, statement, predicateType, key } = given;
  const place: AttachedPlace = { at, digest, kind: 'att' };
  const before = await readAttached(client, place, signal);
  const signed = await statementsBy(client, place, { layers: before, publicKey: key.publicKey }, signal);
  if (signed.some((known) => Buffer.compare(known, statement) === 0)) return false;
  const sig = Buffer.from(key.sign(signedBytes(STATEMENT_TYPE, statement))).toString('base64');
  const content = Buffer.from(
    JSON.stringify({
      payloadType: STATEMENT_TYPE,
      payload: Buffer.from(statement).toString('base64'),
      signatures: [{ keyid: '', sig }],
    }),
  );
  // cosign looks for its annotation on every such layer; the signature itself is in the envelope.
  const annotations = { [SIGNATURE_ANNOTATION]: '', predicateType };
  await pushAttached(client, place, { before, content, mediaType: ENVELOPE_TYPE, annotations }, signal);
  return true;
}

/**
 * The statements beside an image that a key signed. The caller checks that their subject is this image.
 *
 * @param publicKey in PEM.
 * @throws RegistryError, ContentError, SigningKeyError
 */
export async function statementsSignedBy(
  client: RegistryClient,
  at: Repository,
  given: { readonly digest: Digest; readonly publicKey: string },
  signal: AbortSignal,
): Promise<readonly Uint8Array[]> {
  const { digest, publicKey } = given;
  const place: AttachedPlace = { at, digest, kind: 'att' };
  const layers = await readAttached(client, place, signal);
  return statementsBy(client, place, { layers, publicKey }, signal);
}

/** What is signed: the payload together with its type (DSSE, protocol.md "Signature Definition", PAE). */
export function signedBytes(type: string, payload: Uint8Array): Uint8Array {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `),
    payload,
  ]);
}

async function statementsBy(
  client: RegistryClient,
  place: AttachedPlace,
  given: { readonly layers: readonly AttachedLayer[]; readonly publicKey: string },
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  const key = parsePublicKey(given.publicKey, 'the public key');
  const limits = { mediaType: ENVELOPE_TYPE, maxBytes: MAX_ENVELOPE_BYTES };
  const statements: Uint8Array[] = [];
  for (const layer of given.layers) {
    const content = await readContent(client, place, { layer, ...limits }, signal);
    const envelope = content && parseEnvelope(content);
    if (envelope?.payloadType !== STATEMENT_TYPE) continue;
    const bytes = signedBytes(envelope.payloadType, envelope.payload);
    if (envelope.signatures.some(({ sig }) => isSignedBy(key, bytes, sig))) statements.push(envelope.payload);
  }
  return statements;
}

function parseEnvelope(content: Uint8Array): z.infer<typeof Envelope> | undefined {
  try {
    return Envelope.safeParse(JSON.parse(Buffer.from(content).toString('utf8'))).data;
  } catch {
    return undefined;
  }
}
