package emend

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxKeyRunes bounds a phrase, before and after normalisation.
const maxKeyRunes = 512

// ignorable is Default_Ignorable_Code_Point, from and to: invisible, so two phrases must not differ by it.
var ignorable = [][2]rune{
	{0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
	{0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
}

func isIgnorable(r rune) bool {
	return slices.ContainsFunc(ignorable, func(span [2]rune) bool { return span[0] <= r && r <= span[1] })
}

// Normalise returns the normal form of a phrase, version 1: NFKC case-folded, white space folded and trimmed. All spellings of
// a phrase have one.
func Normalise(phrase string) string {
	if isASCII(phrase) {
		return strings.Join(strings.Fields(strings.ToLower(phrase)), " ")
	}
	fold := cases.Fold()
	for range 8 {
		folded := fold.String(norm.NFKC.String(seen(phrase)))
		folded = norm.NFKC.String(seen(folded))
		if folded == phrase {
			break
		}
		phrase = folded
	}
	return strings.Join(strings.Fields(phrase), " ")
}

// seen leaves out what people do not see, and folds what the tables below do not know.
func seen(phrase string) string {
	var kept strings.Builder
	for _, r := range phrase {
		if folded, is := newer[r]; is {
			kept.WriteString(folded)
		} else if !isIgnorable(r) {
			kept.WriteRune(r)
		}
	}
	return kept.String()
}

func isASCII(text string) bool {
	for place := range len(text) {
		if text[place] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// key returns the normal form of a phrase to look up, or what is wrong with it, as the service says it.
func key(phrase string) (string, error) {
	refused := func(format string, parts ...any) (string, error) {
		return "", invalid("phrase", fmt.Sprintf(format, parts...))
	}
	length := 0
	for _, r := range strings.TrimFunc(phrase, func(r rune) bool { return unicode.IsSpace(r) || isIgnorable(r) }) {
		if isIgnorable(r) || isHidden(r) {
			continue
		}
		if unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' {
			return refused("must not contain control characters, has U+%04X", r)
		}
		length++
	}
	if length == 0 {
		return refused("is required: 1 to %d characters", maxKeyRunes)
	}
	if length > maxKeyRunes {
		return refused("must be 1 to %d characters, has %d", maxKeyRunes, length)
	}
	normal := Normalise(phrase)
	if count := utf8.RuneCountInString(normal); count == 0 {
		return refused("is empty after normalisation")
	} else if count > maxKeyRunes {
		return refused("must be at most %d characters after normalisation, has %d", maxKeyRunes, count)
	}
	for _, r := range normal {
		if isHidden(r) {
			return refused("must not contain invisible characters, has U+%04X", r)
		}
	}
	return normal, nil
}

// isHidden says of a character that is not ignorable whether people do not see it: format characters but those that begin a
// number or an abbreviation, and noncharacters.
func isHidden(r rune) bool {
	seen := unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	return unicode.Is(unicode.Cf, r) && !seen || unicode.Is(unicode.Noncharacter_Code_Point, r)
}
