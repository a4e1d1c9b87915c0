/** One field of a protobuf message as it lies on the wire (protobuf.dev, "Encoding"). */
export type WireField =
  | { readonly number: number; readonly type: 'varint'; readonly value: bigint }
  | { readonly number: number; readonly type: 'bytes'; readonly value: Buffer };

/** @returns the fields of a message in their order. @throws Error for bytes that are no message. */
export function readFields(message: Buffer): readonly WireField[] {
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
