import type { Json, JsonObject } from '../json.ts';
import { type Field, type FieldType, MESSAGES, type Message } from './messages.ts';

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Before every object: `k8s` and a zero (Kubernetes API concepts, "Protobuf encoding idiom"). */
const MAGIC = Buffer.from('k8s\0');

/**
 * Reads an object as kubectl sends those of built-in kinds.
 *
 * @throws Error for bytes that are no such object, a kind that is not known here, or a field of one.
 */
export function readProtobufObject(body: Buffer): JsonObject {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC))
    throw new Error('the body does not begin as a protobuf object does');
  const unknown = readFields(body.subarray(MAGIC.length));
  const type = readFields(bytes(unknown, 1));
  const apiVersion = bytes(type, 1).toString('utf8');
  const kind = bytes(type, 2).toString('utf8');
  const message = MESSAGES[`${apiVersion} ${kind}`];
  if (message === undefined) throw new Error(`${apiVersion} ${kind} is read as JSON or YAML only`);
  return { apiVersion, kind, ...readMessage(bytes(unknown, 2), message, kind) };
}

function bytes(fields: readonly WireField[], number: number): Buffer {
  const found = fields.find((each) => each.number === number);
  return found?.type === 'bytes' ? found.value : Buffer.alloc(0);
}

function readMessage(content: Buffer, message: Message, path: string): JsonObject {
  const object: Record<string, Json> = {};
  for (const wire of readFields(content)) {
    const field = message[wire.number];
    if (field === undefined) throw new Error(`field ${wire.number} of ${path} is read as JSON or YAML only`);
    if (field.type === 'ignored') continue;
    const value = combined(object[field.name], field, wire, `${path}.${field.name}`);
    if (value !== undefined) object[field.name] = value;
  }
  return object;
}

/** @returns undefined for an empty value that is none. */
function combined(before: Json | undefined, field: Field, wire: WireField, path: string): Json | undefined {
  if (field.type === 'strings' || field.type === 'blobs') {
    return { ...(before as JsonObject | undefined), ...entry(wire, field.type) };
  }
  const value = readValue(wire, field.type, path);
  if (field.repeated !== true || value === undefined) return value;
  return [...((before as readonly Json[] | undefined) ?? []), value];
}

/** A map is a list of messages with a key and a value. */
function entry(wire: WireField, type: 'strings' | 'blobs'): JsonObject {
  const fields = readFields(content(wire));
  return {
    [bytes(fields, 1).toString('utf8')]: bytes(fields, 2).toString(type === 'blobs' ? 'base64' : 'utf8'),
  };
}

function readValue(wire: WireField, type: FieldType, path: string): Json | undefined {
  if (typeof type === 'object') return readMessage(content(wire), type, path);
  if (type === 'string') return content(wire).toString('utf8');
  if (type === 'text') return content(wire).toString('utf8') || undefined;
  if (type === 'intOrString') return intOrString(readMessage(content(wire), INT_OR_STRING, path));
  if (wire.type !== 'varint') throw new Error(`${path} is no number`);
  if (type === 'boolean') return wire.value !== 0n;
  if (type === 'flag') return wire.value === 0n ? undefined : true;
  const number = Number(BigInt.asIntN(64, wire.value));
  return type === 'count' && number === 0 ? undefined : number;
}

const INT_OR_STRING: Message = {
  1: { name: 'type', type: 'integer' },
  2: { name: 'intVal', type: 'integer' },
  3: { name: 'strVal', type: 'string' },
};

function intOrString({ type, intVal = 0, strVal = '' }: JsonObject): Json | undefined {
  return type === 1 ? strVal : intVal;
}

function content(wire: WireField): Buffer {
  return wire.type === 'bytes' ? wire.value : Buffer.alloc(0);
}

/** One field of a protobuf message as it lies on the wire (protobuf.dev, "Encoding"). */
export type WireField =
  | { readonly number: number; readonly type: 'varint'; readonly value: bigint }
  | { readonly number: number; readonly type: 'bytes'; readonly value: Buffer };

/** @returns the fields of a message in their order. @throws Error for bytes that are no message. */
function readFields(message: Buffer): readonly WireField[] {
  const fields: WireField[] = [];
  let offset = 0;

  function varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[offset];
      if (byte === undefined) throw new Error('the message ends within a number');
      offset += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error('a number of the message has no end');
  }

  while (offset < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    switch (tag & 7) {
      case 0:
        fields.push({ number, type: 'varint', value: varint() });
        break;
      case 2: {
        const length = Number(varint());
        if (offset + length > message.length) throw new Error('the message ends within a field');
        fields.push({ number, type: 'bytes', value: message.subarray(offset, offset + length) });
        offset += length;
        break;
      }
      default:
        throw new Error(`the message has a field of wire type ${tag & 7}, which no object of ours has`);
    }
  }
  return fields;
}
