/**
 * How the annotations had settings before there were fields for them. Each of these gives what the field would have; a
 * text that is nothing of the kind stays as it is, so that the field's schema says what is expected.
 */

export const asText = (text: string): unknown => text;

/** @throws SyntaxError for what is no JSON. */
export const asJson = (text: string): unknown => JSON.parse(text);

export function asFlag(text: string): unknown {
  return text === 'true' || (text === 'false' ? false : text);
}

export function asCount(text: string): unknown {
  return /^\d+$/.test(text.trim()) ? Number(text) : text.trim();
}

/** Whole seconds; a duration as the field has it is read, too. */
export function asSeconds(text: string): unknown {
  return /^\d{1,6}$/.test(text.trim()) ? `${Number(text)}s` : text;
}

/** Separated by commas or blanks. */
export function asNames(text: string): unknown {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
}

export function asLines(text: string): unknown {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
