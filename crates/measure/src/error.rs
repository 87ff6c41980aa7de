//! Whose fault it is when there is no measurement.

/// Why a request was not answered.
#[derive(thiserror::Error, Debug)]
pub enum MeasureError {
    /// The request, the module or a machine file is at fault. The message
    /// names the place and the mend.
    #[error("{0}")]
    Input(String),
    /// We are at fault: a stage contradicted another, or a check between
    /// stages failed.
    #[error("{0}")]
    Internal(String),
}

impl MeasureError {
    /// An error in what was given to us.
    pub fn input(message: impl std::fmt::Display) -> MeasureError {
        MeasureError::Input(message.to_string())
    }

    /// An error in what we made.
    pub fn internal(message: impl std::fmt::Display) -> MeasureError {
        MeasureError::Internal(message.to_string())
    }
}
