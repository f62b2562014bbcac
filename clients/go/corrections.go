package emend

import (
	commonpb "emend.dev/clients/go/gen/emend/common/v1"
)

// A Correction says what is wrong and what is right. Fields are sent unchecked: the service reports every violation at once.
type Correction struct {
	message *commonpb.Correction
	queryID string
}

// Message is the correction as it is sent.
func (c Correction) Message() *commonpb.Correction { return c.message }

// Verb says which verb is right for what the user said.
func Verb(input, correct string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Verb{
		Verb: &commonpb.VerbCorrection{OriginalInput: input, CorrectChoice: correct},
	}}}
}

// PhraseMapping says which verb a phrase means.
func PhraseMapping(phrase, verb string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_PhraseMapping{
		PhraseMapping: &commonpb.PhraseMapping{Phrase: phrase, Verb: verb},
	}}}
}

// Entity says which entity, by its id, is right for the name that the user used.
func Entity(input, correct string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Entity{
		Entity: &commonpb.EntityCorrection{OriginalInput: input, CorrectChoice: correct},
	}}}
}

// Prohibition says never to offer a choice for a phrase.
func Prohibition(phrase, choice string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Prohibition{
		Prohibition: &commonpb.Prohibition{Phrase: phrase, ForbiddenChoice: choice},
	}}}
}

// Synonyms says that other terms, 1 to 32, stand for one.
func Synonyms(term string, relation commonpb.SynonymRelation, equivalents ...string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Term{
		Term: &commonpb.TermCorrection{Term: term, Equivalents: equivalents, Relation: relation},
	}}}
}

// BlockDomain says that sources of a domain must not be shown. It needs a reason.
func BlockDomain(pattern string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_DomainBlock{
		DomainBlock: &commonpb.DomainBlock{Pattern: pattern},
	}}}
}

// UnblockDomain says that sources of a domain are shown; without a level they are trusted as before. It needs a reason.
func UnblockDomain(pattern string, level commonpb.TrustLevel) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_DomainUnblock{
		DomainUnblock: &commonpb.DomainUnblock{Pattern: pattern, Level: level},
	}}}
}

// ClearDomain says that what people decided about a domain no longer applies. It needs a reason.
func ClearDomain(pattern string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_DomainClearOverride{
		DomainClearOverride: &commonpb.DomainClearOverride{Pattern: pattern},
	}}}
}

// TrustDomain says how far sources of a domain are trusted. It needs a reason.
func TrustDomain(pattern string, level commonpb.TrustLevel) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_DomainSetTrust{
		DomainSetTrust: &commonpb.DomainSetTrust{Pattern: pattern, Level: level},
	}}}
}

// RejectClaim hides a claim, with a reason code such as SPAM or none. It needs a reason.
func RejectClaim(claimID, reasonCode string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_ClaimReject{
		ClaimReject: &commonpb.ClaimReject{ClaimId: claimID, ReasonCode: reasonCode},
	}}}
}

// RestoreClaim shows a claim again. It needs a reason.
func RestoreClaim(claimID string) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_ClaimRestore{
		ClaimRestore: &commonpb.ClaimRestore{ClaimId: claimID},
	}}}
}

// CorrectEdge says which label an edge between a fragment and a claim should have.
func CorrectEdge(edgeID string, relation commonpb.EdgeRelation) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_EdgeCorrect{
		EdgeCorrect: &commonpb.EdgeCorrect{EdgeId: edgeID, CorrectRelation: relation},
	}}}
}

// Tuning says how queries of one type are searched.
func Tuning(queryType string, tuning *commonpb.SearchTuningValue) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Tuning{
		Tuning: &commonpb.TuningCorrection{QueryType: queryType, Tuning: tuning},
	}}}
}

// RateOutput says how good is what an AI made.
func RateOutput(rating *commonpb.Rating) Correction {
	return Correction{message: &commonpb.Correction{Correction: &commonpb.Correction_Rating{Rating: rating}}}
}

// SearchRating says how somebody found what a recorded query returned: 1 good, 0 neither, -1 not what was wanted. The service
// refuses any other value.
func SearchRating(queryID string, value int) Correction {
	rating := commonpb.SearchRatingValue_SEARCH_RATING_VALUE_UNSPECIFIED
	switch value {
	case 1:
		rating = commonpb.SearchRatingValue_SEARCH_RATING_VALUE_UP
	case 0:
		rating = commonpb.SearchRatingValue_SEARCH_RATING_VALUE_NEUTRAL
	case -1:
		rating = commonpb.SearchRatingValue_SEARCH_RATING_VALUE_DOWN
	}
	return Correction{queryID: queryID, message: &commonpb.Correction{Correction: &commonpb.Correction_SearchRating{
		SearchRating: &commonpb.SearchRating{Value: rating},
	}}}
}

// InsteadOf says what the system chose. Corrections of verbs and entities have it; others stay as they are.
func (c Correction) InsteadOf(choice string) Correction {
	c.message = copied(c.message)
	if verb := c.message.GetVerb(); verb != nil {
		verb.SystemChoice = choice
	} else if entity := c.message.GetEntity(); entity != nil {
		entity.SystemChoice = choice
	}
	return c
}

// InTask says in which research task it was said. Decisions about domains, claims and edges have it; others stay as they are.
func (c Correction) InTask(id string) Correction {
	c.message = copied(c.message)
	switch form := c.message.GetCorrection().(type) {
	case *commonpb.Correction_DomainBlock:
		form.DomainBlock.TaskId = id
	case *commonpb.Correction_DomainUnblock:
		form.DomainUnblock.TaskId = id
	case *commonpb.Correction_DomainClearOverride:
		form.DomainClearOverride.TaskId = id
	case *commonpb.Correction_DomainSetTrust:
		form.DomainSetTrust.TaskId = id
	case *commonpb.Correction_ClaimReject:
		form.ClaimReject.TaskId = id
	case *commonpb.Correction_ClaimRestore:
		form.ClaimRestore.TaskId = id
	case *commonpb.Correction_EdgeCorrect:
		form.EdgeCorrect.TaskId = id
	}
	return c
}
