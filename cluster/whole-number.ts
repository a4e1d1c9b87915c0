import { InvalidArgumentError } from 'commander';

/**
 * @returns what reads a flag's value as a whole number between two bounds, both included.
 * @throws InvalidArgumentError (the function returned) that says what would be right.
 */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`a whole number, ${range}`);
  };
}
